"""The registry of jobs, their schedule and their runs."""

from pipeline.kernel.feature import Feature

feature = Feature("maintenance", needs=("entities", "indexing", "model", "predictions", "review", "snapshots"))
