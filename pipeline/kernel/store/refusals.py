"""Texts that a person rejected, archived or purged, so that another offer does not bring them back."""

from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Connection

from pipeline.kernel.store.ingested import mark
from pipeline.kernel.store.rows import Relation, Rows, Table


class RefusedBy(StrEnum):
    """The action of a person on a memory."""

    REJECTED = "rejected"
    ARCHIVED = "archived"
    PURGED = "purged"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused text, and the number of later offers; for a purged memory, the text is not stored."""

    mark: str
    memory_id: str
    how: RefusedBy
    at: str
    offers: int
    offered_at: str | None


_REFUSALS = Rows(Refusal, "refusal")


def add(db: Connection, memory_id: str, content_hash: str, how: RefusedBy, at: str) -> None:
    """Record that a person refused a text."""
    name = mark(db, content_hash) if how is RefusedBy.PURGED else content_hash
    if how is RefusedBy.PURGED:
        # A keyed hash, so that the text cannot be looked up elsewhere.
        db.execute("DELETE FROM refusal WHERE mark = ?", (content_hash,))
    db.execute(
        "INSERT INTO refusal (mark, memory_id, how, at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (mark, memory_id) DO UPDATE SET how = excluded.how, at = excluded.at",
        (name, memory_id, how, at),
    )


def take_back(db: Connection, memory_id: str) -> bool:
    """Allow a text again; return whether it was refused."""
    statement = "DELETE FROM refusal WHERE mark IN (SELECT mark FROM refusal WHERE memory_id = ?)"
    return db.execute(statement, (memory_id,)).rowcount > 0


def find(db: Connection, content_hash: str) -> Refusal | None:
    """Return the refusal of exactly this text."""
    # Most stores have no refusals, and a keyed hash costs more than this query.
    if db.execute("SELECT 1 FROM refusal LIMIT 1").fetchone() is None:
        return None
    return _REFUSALS.fetch_one(db, "WHERE mark IN (?, ?)", (content_hash, mark(db, content_hash)))


def has_purged(db: Connection) -> bool:
    """Return whether a text was purged."""
    return db.execute("SELECT 1 FROM refusal WHERE how = ? LIMIT 1", (RefusedBy.PURGED,)).fetchone() is not None


def is_refused(db: Connection, memory_id: str) -> bool:
    """Return whether a person refused a memory that still exists."""
    return db.execute("SELECT 1 FROM refusal WHERE memory_id = ?", (memory_id,)).fetchone() is not None


def count_offer(db: Connection, memory_id: str, at: str) -> None:
    """Count another offer of a refused text."""
    db.execute("UPDATE refusal SET offers = offers + 1, offered_at = ? WHERE memory_id = ?", (at, memory_id))


def list_offered(db: Connection, limit: int) -> list[Refusal]:
    """List refused texts that were offered again, the last offered first.

    A purged memory with several texts is listed once.
    """
    return _REFUSALS.fetch(
        db,
        "WHERE offers > 0 AND NOT EXISTS "
        "(SELECT 1 FROM refusal o WHERE o.memory_id = refusal.memory_id AND o.mark < refusal.mark) "
        "ORDER BY offered_at DESC LIMIT ?",
        (limit,),
    )


TABLES = (
    Table(
        "refusal",
        ("mark", "memory_id"),
        memory=("memory_id",),
        erasure=lambda db, memory: take_back(db, memory.id),
        replicated=Relation(
            "refusal",
            fields=("how", "at"),
            key="r.memory_id, '', r.mark",
            source="refusal r WHERE r.how <> 'purged'",
            chosen="r.mark IN (SELECT value FROM json_each(?))",
            put=(
                (
                    "INSERT INTO refusal (mark, memory_id, how, at) VALUES (:name, :memory_id, :how, :at) "
                    "ON CONFLICT (mark, memory_id) DO UPDATE SET how = excluded.how, at = excluded.at"
                ),
            ),
            drop="DELETE FROM refusal WHERE mark = :name AND memory_id = :memory_id",
        ),
    ),
)
