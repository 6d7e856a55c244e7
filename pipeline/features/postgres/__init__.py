"""Moves of a data directory between SQLite and PostgreSQL."""
