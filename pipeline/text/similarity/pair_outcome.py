"""Decide what happens to two related memories: the edge between them, and reasons against a merge."""

import re
from typing import Any, Final

from pipeline.kernel.records import EdgeKind, Kind, Memory, Trust
from pipeline.text.lexicon import load_lexicon
from pipeline.text.similarity.pair_classifier import Relation

# Two events remain two, however similar their descriptions.
EVENTS: Final = frozenset({Kind.ACTIVITY, Kind.EPISODE, Kind.MILESTONE})

_DAYS: Final = load_lexicon("similarity").table("of_its_day")
_OF_ITS_DAY: Final = re.compile(
    rf"\b(?:{_DAYS.alternatives('words')})\b|{_DAYS.alternatives('unspaced')}", re.IGNORECASE
)


def choose_edge(relation: Relation, earlier: Memory, later: Memory) -> EdgeKind | None:
    """Return the kind of edge from the later to the earlier of two memories, None for none.

    An event, a text that commands its reader or a less trusted memory contradicts, but supersedes nothing; and
    nothing supersedes a pinned memory or a memory about other code.
    """
    if relation is Relation.SUPERSEDES:
        sure = not (EVENTS & {earlier.kind, later.kind} or later.instructs or later.candidate or earlier.pinned)
        sure = sure and (earlier.branch, earlier.anchor) == (later.branch, later.anchor)
        return EdgeKind.SUPERSEDES if sure and later.trust in (earlier.trust, Trust.TRUSTED) else EdgeKind.CONTRADICTS
    return EdgeKind.CONTRADICTS if relation is Relation.CONTRADICTS else None


def find_merge_blockers(survivor: Memory, absorbed: Memory) -> tuple[str, ...]:
    """Return fixed phrases that say why one memory must not absorb another; empty if it may."""
    blockers = []
    if survivor.occurred_at[:10] != absorbed.occurred_at[:10] and any(
        _OF_ITS_DAY.search(memory.content) for memory in (survivor, absorbed)
    ):
        blockers.append("they are about different days")
    if absorbed.kind in EVENTS:
        blockers.append("events may happen twice")
    if _list_fields(survivor) != _list_fields(absorbed):
        blockers.append("their fields differ")
    if survivor.anchor != absorbed.anchor:
        blockers.append("they are about different code")
    if survivor.branch != absorbed.branch:
        blockers.append("they belong to different branches")
    newer = max(survivor, absorbed, key=lambda memory: memory.seq)
    if absorbed.pinned:
        blockers.append(f"the {'newer' if absorbed is newer else 'older'} one is pinned")
    if survivor.candidate and not absorbed.candidate:
        blockers.append(f"the {'newer' if survivor is newer else 'older'} one is waiting for review")
    return tuple(blockers)


def _list_fields(memory: Memory) -> dict[str, Any]:
    """Return the fields of a memory that add to its text; the rule of a captured lesson is its text.

    A merge keeps the higher severity, so that it does not matter here.
    """
    return {
        name: value
        for name, value in memory.details.items()
        if name != "severity" and (name, value) != ("rule", memory.content)
    }
