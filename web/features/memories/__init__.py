"""Entry points of memories."""
