"""Whether agents kept or broke the rules that they were shown."""

from pipeline.kernel.feature import Feature

feature = Feature("obedience", needs=("lessons",))
