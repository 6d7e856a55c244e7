"""The entry points of the feature `workspaces`."""
