"""The optional language model of background jobs."""

from pipeline.kernel.feature import Feature

feature = Feature("model")
