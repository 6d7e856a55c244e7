"""The use cases of single memories."""

from pipeline.kernel.feature import Feature

feature = Feature("memories", needs=("aging", "entities", "purge", "review"))
