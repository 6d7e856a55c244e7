"""Entry points of workspaces."""
