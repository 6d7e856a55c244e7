"""Refusals: what a person rejected, archived or purged, so that being offered again brings nothing back."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Connection

from pipeline.store.ingested import mark


class RefusedBy(StrEnum):
    """What a person did with a memory."""

    REJECTED = "rejected"
    ARCHIVED = "archived"
    PURGED = "purged"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A text that a person refused, and how often it was offered since; of a purged one nothing tells its text."""

    mark: str
    memory_id: str
    how: RefusedBy
    at: str
    offers: int
    offered_at: str | None


_SELECT = "SELECT mark, memory_id, how, at, offers, offered_at FROM refusal"


def add(db: Connection, memory_id: str, content_hash: str, how: RefusedBy, at: str) -> None:
    """Note that a person refused a text."""
    name = mark(db, content_hash) if how is RefusedBy.PURGED else content_hash
    if how is RefusedBy.PURGED:
        # Nothing is left by which the text could be looked up elsewhere.
        db.execute("DELETE FROM refusal WHERE mark = ?", (content_hash,))
    db.execute(
        "INSERT INTO refusal (mark, memory_id, how, at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (mark, memory_id) DO UPDATE SET how = excluded.how, at = excluded.at",
        (name, memory_id, how, at),
    )


def take_back(db: Connection, memory_id: str) -> bool:
    """Let a text be offered again; return whether it was refused."""
    said = "DELETE FROM refusal WHERE mark IN (SELECT mark FROM refusal WHERE memory_id = ?)"
    return db.execute(said, (memory_id,)).rowcount > 0


def find(db: Connection, content_hash: str) -> Refusal | None:
    """Return the refusal of exactly this text."""
    # Most stores hold none, and a mark costs more than a look.
    if db.execute("SELECT 1 FROM refusal LIMIT 1").fetchone() is None:
        return None
    row = db.execute(f"{_SELECT} WHERE mark IN (?, ?)", (content_hash, mark(db, content_hash))).fetchone()
    return None if row is None else _refusal(row)


def is_refused(db: Connection, memory_id: str) -> bool:
    """Return whether a person refused a memory that is still there."""
    return db.execute("SELECT 1 FROM refusal WHERE memory_id = ?", (memory_id,)).fetchone() is not None


def count_offer(db: Connection, memory_id: str, at: str) -> None:
    """Note that what was refused was offered again."""
    db.execute("UPDATE refusal SET offers = offers + 1, offered_at = ? WHERE memory_id = ?", (at, memory_id))


def list_offered(db: Connection, limit: int, below: str | None = None) -> list[Refusal]:
    """List what was offered again although it was refused, the last offered first, from below a moment.

    A purged memory with several texts is listed once.
    """
    rows = db.execute(
        f"{_SELECT} WHERE offers > 0 AND (CAST(? AS TEXT) IS NULL OR offered_at < ?) AND NOT EXISTS "  # noqa: S608 - constant text
        "(SELECT 1 FROM refusal o WHERE o.memory_id = refusal.memory_id AND o.mark < refusal.mark) "
        "ORDER BY offered_at DESC LIMIT ?",
        (below, below, limit),
    )
    return [_refusal(row) for row in rows]


def _refusal(row: Sequence[str]) -> Refusal:
    name, memory_id, how, at, offers, offered_at = row
    return Refusal(name, memory_id, RefusedBy(how), at, int(offers), offered_at)
