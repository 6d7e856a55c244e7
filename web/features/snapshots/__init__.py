"""Entry points of snapshots."""
