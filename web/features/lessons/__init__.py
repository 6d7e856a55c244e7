"""The entry points of the feature `lessons`."""
