"""The entry points of the feature `export`."""
