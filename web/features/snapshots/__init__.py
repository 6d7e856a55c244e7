"""The entry points of the feature `snapshots`."""
