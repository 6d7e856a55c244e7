"""Entry points of maintenance."""
