"""The entry points of the feature `entities`."""
