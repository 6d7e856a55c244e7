"""The entry points of the feature `citations`."""
