"""Surfacings: each time a lesson was put before an agent, and whether it was followed."""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any


@dataclass(frozen=True, slots=True)
class Surfacing:
    """One time that a memory was put before an agent; `followed` is None until somebody says, and may say why.

    `agent_id` names a subagent of the session; its main agent has none.
    """

    id: str
    memory_seq: int
    session_id: str | None
    at: str
    followed: bool | None = None
    agent_id: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a memory was shown, followed and ignored."""

    shown: int = 0
    followed: int = 0
    ignored: int = 0


def add(db: Connection, surfacings: Sequence[Surfacing]) -> None:
    """Keep surfacings."""
    db.executemany(
        "INSERT OR IGNORE INTO surface (id, memory_seq, session_id, at, agent_id) VALUES (?, ?, ?, ?, ?)",
        [(s.id, s.memory_seq, s.session_id, s.at, s.agent_id) for s in surfacings],
    )


def get(db: Connection, surface_id: str) -> Surfacing | None:
    """Return a surfacing by id."""
    row = db.execute(
        "SELECT id, memory_seq, session_id, at, followed, agent_id, note FROM surface WHERE id = ?", (surface_id,)
    ).fetchone()
    return None if row is None else _surfacing(row)


def unanswered(db: Connection, session_id: str) -> list[Surfacing]:
    """List what was put before the agents of a session and nobody said anything about."""
    rows = db.execute(
        "SELECT id, memory_seq, session_id, at, agent_id FROM surface "
        "WHERE session_id = ? AND followed IS NULL ORDER BY seq",
        (session_id,),
    )
    return [Surfacing(surface_id, seq, session, at, None, agent) for surface_id, seq, session, at, agent in rows]


def answer(db: Connection, surface_id: str, note: str | None, at: str, *, followed: bool) -> None:
    """Say whether what was shown was followed; the last word counts."""
    db.execute(
        "UPDATE surface SET followed = ?, note = ?, answered_at = ? WHERE id = ?", (followed, note, at, surface_id)
    )


def withdraw(db: Connection, surface_id: str) -> None:
    """Take back what was said about what was shown."""
    db.execute("UPDATE surface SET followed = NULL, note = NULL, answered_at = NULL WHERE id = ?", (surface_id,))


def tally(db: Connection, memory_seq: int) -> Tally:
    """Count a memory's surfacings."""
    shown, followed, ignored = db.execute(
        "SELECT count(*), count(*) FILTER (WHERE followed = 1), count(*) FILTER (WHERE followed = 0) "
        "FROM surface WHERE memory_seq = ?",
        (memory_seq,),
    ).fetchone()
    return Tally(shown, followed, ignored)


def tally_since(db: Connection, since: str) -> Tally:
    """Count the surfacings of all memories since a moment."""
    shown, followed, ignored = db.execute(
        "SELECT count(*), count(*) FILTER (WHERE followed = 1), count(*) FILTER (WHERE followed = 0) "
        "FROM surface WHERE at >= ?",
        (since,),
    ).fetchone()
    return Tally(shown, followed, ignored)


def latest(db: Connection, memory_seq: int, limit: int) -> list[Surfacing]:
    """List a memory's last surfacings, the latest first."""
    rows = db.execute(
        "SELECT id, memory_seq, session_id, at, followed, agent_id, note FROM surface WHERE memory_seq = ? "
        "ORDER BY seq DESC LIMIT ?",
        (memory_seq, limit),
    )
    return [_surfacing(row) for row in rows]


def purge(db: Connection, memory_seq: int) -> None:
    """Delete a memory's surfacings for good."""
    db.execute("DELETE FROM surface WHERE memory_seq = ?", (memory_seq,))


def _surfacing(row: Sequence[Any]) -> Surfacing:
    surface_id, seq, session, at, followed, agent, note = row
    return Surfacing(surface_id, seq, session, at, None if followed is None else bool(followed), agent, note)
