"""Earlier states of a memory, stored when an edit or a merge replaces them."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from sqlite3 import Connection
from typing import Any

from ulid import ULID

from pipeline.kernel.records import HistoryEntry
from pipeline.kernel.store.rows import DELETE, Relation, Rows, Table, find_row

# A context variable, since many kinds of changes end here, and each request belongs to one person.
_author: ContextVar[str | None] = ContextVar("author", default=None)


@contextmanager
def written_by(person_id: str | None) -> Iterator[None]:
    """Attribute entries that are added in this context to a person."""
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
    """Store an earlier state; `about_seq` is the other memory whose text it contains, if any.

    An entry that several machines create independently has the same `uid` on all and is stored once.
    """
    detail_json = json.dumps(detail, ensure_ascii=False)
    db.execute(
        "INSERT INTO history (memory_seq, at, event, content, detail, about_seq, uid, author) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (memory_seq, at, event, content, detail_json, about_seq, uid or str(ULID()), _author.get()),
    )


_ENTRIES = Rows(HistoryEntry, "history")


def of(db: Connection, memory_seq: int) -> list[HistoryEntry]:
    """List a memory's earlier states, oldest first."""
    return _ENTRIES.fetch(db, "WHERE memory_seq = ? ORDER BY seq", (memory_seq,))


def page(db: Connection, memory_seq: int, limit: int, before: int | None) -> list[tuple[int, HistoryEntry]]:
    """List (row number, earlier state) of a memory, the last first, below a row number."""
    rows = db.execute(
        f"SELECT seq, {_ENTRIES.columns} FROM history WHERE memory_seq = ? AND seq < ? ORDER BY seq DESC LIMIT ?",  # noqa: S608
        (memory_seq, before if before is not None else 2**62, limit),
    )
    return [(seq, _ENTRIES.read(row)) for seq, *row in rows]


def find_last(db: Connection, memory_seq: int, event: str) -> int:
    """Return the row number of the last entry of an event, 0 if there is none."""
    return (
        find_row(db, int, "SELECT max(seq) FROM history WHERE memory_seq = ? AND event = ?", (memory_seq, event)) or 0
    )


def text_after(db: Connection, memory_seq: int, seq: int) -> str | None:
    """Return a memory's text between a history entry and the next edit, None if no edit followed."""
    return find_row(
        db,
        str,
        "SELECT content FROM history WHERE memory_seq = ? AND seq > ? AND event = 'edited' ORDER BY seq LIMIT 1",
        (memory_seq, seq),
    )


def count(db: Connection, memory_seq: int) -> int:
    """Count the earlier states of a memory."""
    return int(db.execute("SELECT count(*) FROM history WHERE memory_seq = ?", (memory_seq,)).fetchone()[0])


def forget_merge(db: Connection, memory_seq: int, about_seq: int) -> None:
    """Delete the entry that a memory was merged into another."""
    db.execute(
        "DELETE FROM history WHERE memory_seq = ? AND about_seq = ? AND event = 'merged'", (memory_seq, about_seq)
    )


_DROP = "DELETE FROM history WHERE uid = :name AND memory_seq = :seq"
TABLES = (
    Table(
        "history",
        text=("content", "detail"),
        memory=("memory_seq", "about_seq"),
        erasure=DELETE,
        replicated=Relation(
            "history",
            fields=("at", "event", "content", "detail", "author"),
            key="a.id, coalesce(b.id, ''), r.uid",
            source="history r JOIN memory a ON a.seq = r.memory_seq LEFT JOIN memory b ON b.seq = r.about_seq "
            "WHERE true",
            chosen="r.uid IN (SELECT value FROM json_each(?))",
            put=(
                _DROP,
                (
                    "INSERT INTO history (memory_seq, at, event, content, detail, about_seq, uid, author) "
                    "VALUES (:seq, :at, :event, :content, :detail, :other_seq, :name, :author)"
                ),
            ),
            drop=_DROP,
        ),
    ),
)
