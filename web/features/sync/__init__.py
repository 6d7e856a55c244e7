"""The entry points of the feature `sync`."""
