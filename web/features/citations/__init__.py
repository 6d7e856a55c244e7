"""Entry points of citations."""
