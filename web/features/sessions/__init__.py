"""The entry points of past sessions."""
