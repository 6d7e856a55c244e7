"""Earlier states of a memory, kept when an edit or a merge replaced them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from sqlite3 import Connection
from typing import Any

from ulid import ULID

from pipeline.records import HistoryEntry

# Every change is made in one of many ways that all end here, and each request is one person's.
_author: ContextVar[str | None] = ContextVar("author", default=None)


@contextmanager
def written_by(person_id: str | None) -> Iterator[None]:
    """Let what is added meanwhile be a person's doing."""
    before = _author.set(person_id)
    try:
        yield
    finally:
        _author.reset(before)


def add(
    db: Connection,
    memory_seq: int,
    at: str,
    event: str,
    content: str | None,
    detail: Mapping[str, Any],
    about_seq: int | None = None,
    uid: str | None = None,
) -> None:
    """Keep an earlier state; `about_seq` is the memory whose text it holds when that is another one.

    What several machines find by themselves has one `uid` on all of them, and is kept once.
    """
    told = json.dumps(detail, ensure_ascii=False)
    db.execute(
        "INSERT INTO history (memory_seq, at, event, content, detail, about_seq, uid, author) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (memory_seq, at, event, content, told, about_seq, uid or str(ULID()), _author.get()),
    )


_ENTRY = "at, event, content, detail, author"


def of(db: Connection, memory_seq: int) -> list[HistoryEntry]:
    """List a memory's earlier states, oldest first."""
    rows = db.execute(f"SELECT {_ENTRY} FROM history WHERE memory_seq = ? ORDER BY seq", (memory_seq,))  # noqa: S608
    return [_entry(row) for row in rows]


def page(db: Connection, memory_seq: int, limit: int, before: int | None) -> list[tuple[int, HistoryEntry]]:
    """List (row number, earlier state) of a memory, the last first, from below a row number."""
    rows = db.execute(
        f"SELECT seq, {_ENTRY} FROM history WHERE memory_seq = ? AND seq < ? ORDER BY seq DESC LIMIT ?",  # noqa: S608
        (memory_seq, before if before is not None else 2**62, limit),
    )
    return [(seq, _entry(row)) for seq, *row in rows]


def _entry(row: Sequence[Any]) -> HistoryEntry:
    at, event, content, detail, author = row
    return HistoryEntry(at, event, content, json.loads(detail), author)


def find_last(db: Connection, memory_seq: int, event: str) -> int:
    """Return the row number of the last entry of a kind, 0 where there is none."""
    row = db.execute("SELECT max(seq) FROM history WHERE memory_seq = ? AND event = ?", (memory_seq, event)).fetchone()
    return int(row[0] or 0)


def text_after(db: Connection, memory_seq: int, seq: int) -> str | None:
    """Return the text that a memory had after an entry of its history until the next edit, None if none followed."""
    row = db.execute(
        "SELECT content FROM history WHERE memory_seq = ? AND seq > ? AND event = 'edited' ORDER BY seq LIMIT 1",
        (memory_seq, seq),
    ).fetchone()
    return None if row is None else row[0]


def count(db: Connection, memory_seq: int) -> int:
    """Count the earlier states of a memory."""
    return int(db.execute("SELECT count(*) FROM history WHERE memory_seq = ?", (memory_seq,)).fetchone()[0])


def purge(db: Connection, memory_seq: int) -> None:
    """Delete a memory's history for good, and what others' history tells of it."""
    db.execute("DELETE FROM history WHERE memory_seq = ? OR about_seq = ?", (memory_seq, memory_seq))


def forget_merge(db: Connection, memory_seq: int, about_seq: int) -> None:
    """Take back that another memory was merged into one."""
    db.execute(
        "DELETE FROM history WHERE memory_seq = ? AND about_seq = ? AND event = 'merged'", (memory_seq, about_seq)
    )
