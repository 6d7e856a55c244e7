"""Surfacings: each time a lesson was put before an agent, and whether it was followed."""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection


@dataclass(frozen=True, slots=True)
class Surfacing:
    """One time that a memory was put before an agent; `followed` is None until somebody says."""

    id: str
    memory_seq: int
    session_id: str | None
    at: str
    followed: bool | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a memory was shown, followed and ignored."""

    shown: int = 0
    followed: int = 0
    ignored: int = 0


def add(db: Connection, surfacings: Sequence[Surfacing]) -> None:
    """Keep surfacings."""
    db.executemany(
        "INSERT OR IGNORE INTO surface (id, memory_seq, session_id, at) VALUES (?, ?, ?, ?)",
        [(s.id, s.memory_seq, s.session_id, s.at) for s in surfacings],
    )


def get(db: Connection, surface_id: str) -> Surfacing | None:
    """Return a surfacing by id."""
    row = db.execute(
        "SELECT id, memory_seq, session_id, at, followed FROM surface WHERE id = ?", (surface_id,)
    ).fetchone()
    return None if row is None else Surfacing(row[0], row[1], row[2], row[3], None if row[4] is None else bool(row[4]))


def unanswered(db: Connection, session_id: str) -> list[Surfacing]:
    """List what was put before the agents of a session and nobody said anything about."""
    rows = db.execute(
        "SELECT id, memory_seq, session_id, at FROM surface WHERE session_id = ? AND followed IS NULL ORDER BY seq",
        (session_id,),
    )
    return [Surfacing(surface_id, seq, session, at) for surface_id, seq, session, at in rows]


def answer(db: Connection, surface_id: str, note: str | None, at: str, *, followed: bool) -> None:
    """Say whether what was shown was followed; the last word counts."""
    db.execute(
        "UPDATE surface SET followed = ?, note = ?, answered_at = ? WHERE id = ?", (followed, note, at, surface_id)
    )


def tally(db: Connection, memory_seq: int) -> Tally:
    """Count a memory's surfacings."""
    shown, followed, ignored = db.execute(
        "SELECT count(*), count(*) FILTER (WHERE followed = 1), count(*) FILTER (WHERE followed = 0) "
        "FROM surface WHERE memory_seq = ?",
        (memory_seq,),
    ).fetchone()
    return Tally(shown, followed, ignored)


def purge(db: Connection, memory_seq: int) -> None:
    """Delete a memory's surfacings for good."""
    db.execute("DELETE FROM surface WHERE memory_seq = ?", (memory_seq,))
