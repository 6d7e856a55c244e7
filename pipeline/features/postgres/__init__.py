"""Moves of a data directory between SQLite and PostgreSQL."""

from pipeline.kernel.feature import Feature

feature = Feature("postgres", needs=("snapshots",))
