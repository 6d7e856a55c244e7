"""Which workspace a folder belongs to, and by which rule; reads files, starts no program."""

from pipeline.identity.choose import DEFAULT_WORKSPACE, Choice, choose_workspace
from pipeline.identity.git import branch_of_folder
from pipeline.identity.identify import Identity, Rule, identify
from pipeline.identity.override import Split

__all__ = [
    "DEFAULT_WORKSPACE",
    "Choice",
    "Identity",
    "Rule",
    "Split",
    "branch_of_folder",
    "choose_workspace",
    "identify",
]
