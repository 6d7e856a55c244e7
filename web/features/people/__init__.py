"""Entry points of people."""
