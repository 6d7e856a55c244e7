"""Entry points of team."""
