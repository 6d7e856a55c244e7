"""Earlier states of a memory, kept when an edit or a merge replaced them."""

import json
from collections.abc import Mapping
from sqlite3 import Connection
from typing import Any

from ulid import ULID

from pipeline.records import HistoryEntry


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
    db.execute(
        "INSERT INTO history (memory_seq, at, event, content, detail, about_seq, uid) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (memory_seq, at, event, content, json.dumps(detail, ensure_ascii=False), about_seq, uid or str(ULID())),
    )


def of(db: Connection, memory_seq: int) -> list[HistoryEntry]:
    """List a memory's earlier states, oldest first."""
    rows = db.execute("SELECT at, event, content, detail FROM history WHERE memory_seq = ? ORDER BY seq", (memory_seq,))
    return [HistoryEntry(at, event, content, json.loads(detail)) for at, event, content, detail in rows]


def page(db: Connection, memory_seq: int, limit: int, before: int | None) -> list[tuple[int, HistoryEntry]]:
    """List (row number, earlier state) of a memory, the last first, from below a row number."""
    rows = db.execute(
        "SELECT seq, at, event, content, detail FROM history WHERE memory_seq = ? AND seq < ? "
        "ORDER BY seq DESC LIMIT ?",
        (memory_seq, before if before is not None else 2**62, limit),
    )
    return [(seq, HistoryEntry(at, event, content, json.loads(detail))) for seq, at, event, content, detail in rows]


def text_after(db: Connection, memory_seq: int, seq: int) -> str | None:
    """Return the text that a memory had after an entry of its history until the next edit, None where none followed."""
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
