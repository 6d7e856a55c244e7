"""Entry points of sync."""
