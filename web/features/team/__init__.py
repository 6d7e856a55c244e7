"""The entry points of the feature `team`."""
