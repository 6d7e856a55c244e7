"""The entry points of the feature `changes`."""
