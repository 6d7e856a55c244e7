"""Briefs for subagents, and the sessions of subagents."""

from pipeline.kernel.feature import Feature

feature = Feature("subagents", needs=("lessons",))
