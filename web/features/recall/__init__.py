"""Entry points of recall."""
