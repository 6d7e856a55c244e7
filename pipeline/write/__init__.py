"""Validate, admit and commit memories, and edit stored memories."""
