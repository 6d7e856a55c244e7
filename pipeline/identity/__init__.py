"""Which workspace a folder belongs to, and by which rule; reads files, starts no program."""

from pipeline.identity.identify import Identity, Rule, identify
from pipeline.identity.override import Split

__all__ = ["Identity", "Rule", "Split", "identify"]
