"""The entry points of the feature `arcs`."""
