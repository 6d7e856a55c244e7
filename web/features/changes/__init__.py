"""Entry points of changes."""
