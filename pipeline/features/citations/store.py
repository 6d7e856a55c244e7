"""What memories cite and this machine's checkout contradicts: derived by the check job, read by every recall.

It is one value: it belongs to this machine, is small, and is replaced at once. A changed or purged memory has another
text or none, so that its entry no longer applies.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from sqlite3 import Connection

from pipeline.kernel.records import Memory
from pipeline.kernel.store import meta
from pipeline.kernel.store.rows import Table

MOST_MEMORIES = 1000
MOST_NOTES = 5


@dataclass(frozen=True, slots=True)
class BrokenText:
    """The mark of the text that was checked, and a line for each citation that is wrong."""

    mark: str
    notes: tuple[str, ...]


def text_mark(text: str) -> str:
    """Return a short hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def replace_all(db: Connection, broken: Mapping[str, BrokenText]) -> None:
    """Store what is broken, the newest memories first if there are too many."""
    newest = sorted(broken, reverse=True)[:MOST_MEMORIES]
    value = {memory_id: [broken[memory_id].mark, *broken[memory_id].notes[:MOST_NOTES]] for memory_id in newest}
    meta.note(db, meta.BROKEN_CITATIONS, json.dumps(value, ensure_ascii=False, sort_keys=True))


def read_all(db: Connection) -> Mapping[str, BrokenText]:
    """Return what is broken, by the id of the memory."""
    value = meta.get(db, meta.BROKEN_CITATIONS)
    return {} if value is None else _parse(value)


def read_broken(db: Connection) -> Callable[[Sequence[Memory]], dict[str, tuple[str, ...]]]:
    """Return a function that finds what memories cite and is no longer true, by their ids."""
    return partial(_find_broken, read_all(db))


def _find_broken(broken: Mapping[str, BrokenText], shown: Sequence[Memory]) -> dict[str, tuple[str, ...]]:
    listed = [(memory, broken[memory.id]) for memory in shown if memory.id in broken] if broken else []
    return {memory.id: text.notes for memory, text in listed if text.mark == text_mark(memory.content)}


def _forget(db: Connection, memory: Memory) -> None:
    known = read_all(db)
    if memory.id in known:
        replace_all(db, {other: text for other, text in known.items() if other != memory.id})


@lru_cache(maxsize=8)
def _parse(value: str) -> Mapping[str, BrokenText]:
    return {memory_id: BrokenText(mark, tuple(notes)) for memory_id, (mark, *notes) in json.loads(value).items()}


# Of the single values, only this one contains text.
TABLES = (Table("meta", ("key",), text=("value",), erasure=_forget),)
