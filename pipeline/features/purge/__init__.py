"""Permanent deletion."""

from pipeline.kernel.feature import Feature

feature = Feature("purge", needs=("snapshots",))
