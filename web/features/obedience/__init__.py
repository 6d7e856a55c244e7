"""The entry points of the feature `obedience`."""
