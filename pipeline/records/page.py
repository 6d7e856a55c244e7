"""A page of a list."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some items of a list, and below which cursor the next page begins; None on the last one."""

    items: Sequence[T]
    next_cursor: int | None = None


def page_of(found: Sequence[T], limit: int, cursor: Callable[[T], int]) -> Page[T]:
    """Return a page of a list that was asked for one item more than the page holds."""
    items = found[:limit]
    return Page(items, cursor(items[-1]) if len(found) > len(items) else None)
