"""Entry points of diagnostics."""
