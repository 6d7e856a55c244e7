"""How a workspace takes memories in."""

from collections.abc import Callable
from dataclasses import dataclass


def purged_nothing(_content_hash: str) -> bool:
    """Know of no purge in another workspace."""
    return False


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """How memories are taken in: whether doubtful ones wait for review, whether all do, whether any are stored.

    `is_purged` says of the hash of a text whether the author purged it in another workspace.
    """

    review: bool = False
    incognito: bool = False
    suggest: bool = False
    author: str | None = None
    is_purged: Callable[[str], bool] = purged_nothing


DEFAULT_WRITE_POLICY = WritePolicy()
