"""How a workspace stores memories."""

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.records.branches import SideBranch


def never_purged(_content_hash: str) -> bool:
    """Report no purge in another workspace."""
    return False


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """How memories are stored: whether doubtful memories await review, whether all do, whether any are stored.

    `is_purged` returns whether the author purged a text, given by its hash, in another workspace. `branch` is the
    branch that memories are kept for; with `follows_sessions`, it is otherwise the branch of their session.
    """

    review: bool = False
    incognito: bool = False
    suggest: bool = False
    author: str | None = None
    is_purged: Callable[[str], bool] = never_purged
    branch: SideBranch | None = None
    follows_sessions: bool = False


DEFAULT_WRITE_POLICY = WritePolicy()
