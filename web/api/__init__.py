"""The HTTP API: one blueprint per file."""
