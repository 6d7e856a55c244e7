"""What is asked of memories: which of them, how one shall change; and the page of a list that answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pipeline.records.memory import Kind, OptionalFields, Scope, Trust, Viewer


@dataclass(frozen=True, slots=True)
class Filter:
    """What a listing or a recall may return. Times are RFC 3339 UTC text, `since` inclusive, `until` exclusive.

    `as_of` asks for what was believed at a moment; without it only what holds now is returned. `candidates` asks for
    what waits for review, and for nothing else; `chain` for the milestones of one chain.
    """

    kinds: tuple[Kind, ...] = ()
    scope: Scope | None = None
    session_id: str | None = None
    since: str | None = None
    until: str | None = None
    archived: bool = False
    as_of: str | None = None
    branch: str | None = None
    candidates: bool = False
    chain: str | None = None
    viewer: Viewer = field(default_factory=Viewer)

    @property
    def narrows(self) -> bool:
        """Tell whether the filter leaves out more than what nobody sees and what others own."""
        return bool(
            self.kinds
            or self.scope
            or self.session_id
            or self.since
            or self.until
            or self.as_of
            or self.branch
            or self.chain
        )

    @property
    def owns(self) -> bool:
        """Tell whether the caller has scopes of its own to see into."""
        return self.viewer != Viewer()


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Revision(OptionalFields):
    """The fields of a memory to set; None leaves a field as it is.

    `given_importance` is what decay lets the importance fade from: the importance itself, unless that faded before.
    """

    content: str | None = None
    importance: float | None = None
    tags: tuple[str, ...] | None = None
    metadata: Mapping[str, Any] | None = None
    pinned: bool | None = None
    details: Mapping[str, Any] | None = None
    trust: Trust | None = None
    given_importance: float | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What somebody saw of a memory before they changed it; None for what they did not look at.

    `text` is the mark of its text, `given_importance` what it was given: that it faded since changes nothing.
    """

    text: str | None = None
    tags: tuple[str, ...] | None = None
    given_importance: float | None = None


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some items of a list, and below which cursor the next page begins; None on the last one."""

    items: Sequence[T]
    next_cursor: int | None = None


def page_of(found: Sequence[T], limit: int, cursor: Callable[[T], int]) -> Page[T]:
    """Return a page of a list that was asked for one item more than the page holds."""
    items = found[:limit]
    return Page(items, cursor(items[-1]) if len(found) > len(items) else None)
