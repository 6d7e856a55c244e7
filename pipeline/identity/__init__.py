"""Determine the workspace of a folder and the rule that decided; reads files, starts no program."""

from pipeline.identity.identify import Identity, Rule, identify
from pipeline.identity.project_file import Split

__all__ = ["Identity", "Rule", "Split", "identify"]
