"""The entry points of the feature `memories`."""
