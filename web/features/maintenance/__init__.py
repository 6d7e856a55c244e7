"""The entry points of the feature `maintenance`."""
