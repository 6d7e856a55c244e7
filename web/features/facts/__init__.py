"""The entry points of the feature `facts`."""
