"""Entry points of export."""
