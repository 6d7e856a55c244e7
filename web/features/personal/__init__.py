"""The entry points of the feature `personal`."""
