"""The entry points of the feature `today`."""
