"""Earlier states of a memory, kept when an edit or a merge replaced them."""

import json
from collections.abc import Mapping
from sqlite3 import Connection
from typing import Any

from pipeline.records import HistoryEntry


def add(db: Connection, memory_seq: int, at: str, event: str, content: str | None, detail: Mapping[str, Any]) -> None:
    """Keep an earlier state."""
    db.execute(
        "INSERT INTO history (memory_seq, at, event, content, detail) VALUES (?, ?, ?, ?, ?)",
        (memory_seq, at, event, content, json.dumps(detail, ensure_ascii=False)),
    )


def of(db: Connection, memory_seq: int) -> list[HistoryEntry]:
    """List a memory's earlier states, oldest first."""
    rows = db.execute("SELECT at, event, content, detail FROM history WHERE memory_seq = ? ORDER BY seq", (memory_seq,))
    return [HistoryEntry(at, event, content, json.loads(detail)) for at, event, content, detail in rows]


def purge(db: Connection, memory_seq: int) -> None:
    """Delete a memory's history for good."""
    db.execute("DELETE FROM history WHERE memory_seq = ?", (memory_seq,))
