"""What the door decided about each write, and why; never the text itself."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.records import Kind, Outcome, Source


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision; `id` is the memory's where one was written. The hash is kept of what was turned away only."""

    id: str
    at: str
    outcome: Outcome
    score: float
    reasons: tuple[str, ...]
    source: Source
    kind: Kind
    content_hash: str | None = None


def add(db: Connection, decisions: Sequence[Decision]) -> None:
    """Keep decisions."""
    db.executemany(
        "INSERT INTO admission (id, at, outcome, score, reasons, source, kind, content_hash) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (d.id, d.at, d.outcome, round(d.score, 4), json.dumps(d.reasons), d.source, d.kind, d.content_hash)
            for d in decisions
        ],
    )


def turned_away(db: Connection, content_hash: str) -> int:
    """Count how often a text was turned away."""
    row = db.execute("SELECT count(*) FROM admission WHERE content_hash = ?", (content_hash,)).fetchone()
    return int(row[0])


def of(db: Connection, memory_id: str) -> Decision | None:
    """Return the decision on a memory."""
    rows = db.execute(f"{_SELECT} WHERE id = ?", (memory_id,)).fetchall()
    return _decision(rows[0][1:]) if rows else None


def by_ids(db: Connection, memory_ids: Sequence[str]) -> dict[str, Decision]:
    """Return the decisions on some memories, by their ids."""
    rows = db.execute(f"{_SELECT} WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(memory_ids),))  # noqa: S608 - constant text
    return {row[1]: _decision(row[1:]) for row in rows}


def page(db: Connection, outcome: Outcome | None, limit: int, before: int | None) -> list[tuple[int, Decision]]:
    """List (row number, decision), newest first."""
    rows = db.execute(
        f"{_SELECT} WHERE outcome = coalesce(?, outcome) AND seq < ? ORDER BY seq DESC LIMIT ?",
        (outcome, before if before is not None else 2**62, limit),
    )
    return [(row[0], _decision(row[1:])) for row in rows]


def purge(db: Connection, memory_id: str, content_hash: str) -> None:
    """Delete what was decided about a memory, and about offers of the same text."""
    db.execute("DELETE FROM admission WHERE id = ? OR content_hash = ?", (memory_id, content_hash))


_SELECT = "SELECT seq, id, at, outcome, score, reasons, source, kind, content_hash FROM admission"


def _decision(row: Sequence[str]) -> Decision:
    memory_id, at, outcome, score, reasons, source, kind, content_hash = row
    return Decision(
        memory_id,
        at,
        Outcome(outcome),
        float(score),
        tuple(json.loads(reasons)),
        Source(source),
        Kind(kind),
        content_hash,
    )
