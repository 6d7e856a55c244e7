"""The entry points of the feature `people`."""
