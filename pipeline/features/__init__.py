"""Features: one folder each, with its declaration."""
