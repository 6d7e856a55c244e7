"""How a workspace stores memories."""

from collections.abc import Callable
from dataclasses import dataclass


def never_purged(_content_hash: str) -> bool:
    """Report no purge in another workspace."""
    return False


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """How memories are stored: whether doubtful memories await review, whether all do, whether any are stored.

    `is_purged` returns whether the author purged a text, given by its hash, in another workspace. `branch` is the
    git branch that is checked out where a memory is written, None for the default branch.
    """

    review: bool = False
    incognito: bool = False
    suggest: bool = False
    author: str | None = None
    is_purged: Callable[[str], bool] = never_purged
    branch: str | None = None


DEFAULT_WRITE_POLICY = WritePolicy()
