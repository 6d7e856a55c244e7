"""The entry points of recall."""
