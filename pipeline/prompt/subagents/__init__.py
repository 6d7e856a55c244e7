"""Briefs for subagents, and the sessions of subagents."""
