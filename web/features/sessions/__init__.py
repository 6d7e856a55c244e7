"""Entry points of sessions."""
