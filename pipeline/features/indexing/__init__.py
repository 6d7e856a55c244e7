"""The stages and jobs that keep the derived indexes complete."""

from pipeline.kernel.feature import Feature

feature = Feature("indexing")
