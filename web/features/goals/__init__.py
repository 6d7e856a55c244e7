"""The entry points of the feature `goals`."""
