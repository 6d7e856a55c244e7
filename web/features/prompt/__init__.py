"""Entry points of prompt."""
