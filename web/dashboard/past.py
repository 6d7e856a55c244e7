"""What a memory was before: its history, each change with what it changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from pipeline.records import HistoryEntry, Memory
from pipeline.store import history, memories
from web.dashboard.differences import Fate, Stretch, differences, shortened

EDITED = "edited"


@dataclass(frozen=True, slots=True)
class Change:
    """An entry of the history, with the memory that it tells of and what it changed."""

    number: int
    entry: HistoryEntry
    other: Memory | None
    stretches: tuple[Stretch, ...]


def past(db: Connection, memory: Memory, limit: int, before: int | None) -> tuple[list[Change], int | None]:
    """Return a page of the history, the last change first, and from below which number the next page goes on."""
    found = history.page(db, memory.seq, limit + 1, before)
    page = found[:limit]
    text = memory.content
    if page and before is not None:
        text = history.text_after(db, memory.seq, page[0][0]) or text
    changes = []
    for number, entry in page:
        stretches: list[Stretch] = []
        if entry.event == EDITED and entry.content is not None:
            stretches, text = differences(entry.content, text), entry.content
        elif entry.content is not None:
            # A merge took it in; what the memory itself says stands elsewhere.
            stretches = [one for one in differences(text, entry.content) if one.fate is not Fate.GONE]
        changes.append(Change(number, entry, _told_of(db, entry.detail), tuple(shortened(stretches))))
    return changes, page[-1][0] if len(found) > len(page) else None


def _told_of(db: Connection, detail: Mapping[str, Any]) -> Memory | None:
    return memories.get(db, detail["memory_id"]) if "memory_id" in detail else None
