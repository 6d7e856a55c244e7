"""The entry points of the feature `review`."""
