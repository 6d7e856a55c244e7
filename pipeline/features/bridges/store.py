"""Vocabulary bridges: pairs of names for one thing, and the memory that each was found in.

They are derived data. A bridge counts only while its memory is visible to the entire workspace and not private.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Connection

from pipeline.kernel.records import Filter, Memory, Scope, Viewer
from pipeline.kernel.store import meta
from pipeline.kernel.store.rows import Table, list_rows
from pipeline.kernel.store.visibility import condition

# Bridges are found in these memories only: those that every user of the workspace may see without asking for them.
PUBLIC = Filter(scope=Scope(), viewer=Viewer(only_normal=True))


class BridgeSource(StrEnum):
    """How a bridge was found, the surest first."""

    MERGE = "merge"
    DEFINITION = "definition"
    SHORT_FORM = "short_form"


@dataclass(frozen=True, slots=True)
class MinedBridge:
    """Two names as they are written, how they were found, and the row number of a memory that shows it."""

    first: str
    second: str
    source: BridgeSource
    memory_seq: int


@dataclass(frozen=True, slots=True)
class Bridge:
    """Two names for one thing; a common short form has no memory."""

    first: str
    second: str
    source: BridgeSource
    memory_id: str | None = None


def replace(db: Connection, mined: Sequence[MinedBridge]) -> None:
    """Replace all bridges, if they differ from the stored ones."""
    rows = [(bridge.first, bridge.second, bridge.source, bridge.memory_seq) for bridge in mined]
    if rows == db.execute("SELECT first, second, source, memory_seq FROM bridge ORDER BY seq").fetchall():
        return
    db.execute("DELETE FROM bridge")
    db.executemany("INSERT INTO bridge (first, second, source, memory_seq) VALUES (?, ?, ?, ?)", rows)
    meta.increment(db, meta.BRIDGES_GENERATION)


def list_active(db: Connection) -> list[Bridge]:
    """List the bridges that recall uses, the surest first."""
    clause, values = condition(PUBLIC)
    return list_rows(
        db,
        Bridge,
        "SELECT b.first, b.second, b.source, m.id FROM bridge b JOIN memory m ON m.seq = b.memory_seq "  # noqa: S608
        f"WHERE b.memory_seq IN (SELECT seq FROM memory WHERE {clause}) ORDER BY b.seq",
        values,
    )


def list_public_texts(db: Connection, before: int | None, limit: int) -> list[tuple[int, str]]:
    """List the row numbers and texts of the memories that bridges are found in, newest first."""
    clause, values = condition(PUBLIC)
    return db.execute(
        f"SELECT seq, content FROM memory WHERE {clause} AND seq < ? ORDER BY seq DESC LIMIT ?",  # noqa: S608 - constant
        (*values, before if before is not None else 2**62, limit),
    ).fetchall()


def _forget_all(db: Connection, _memory: Memory) -> None:
    # Any of them may contain a word of the memory. The next run finds the others.
    if db.execute("DELETE FROM bridge").rowcount:
        meta.increment(db, meta.BRIDGES_GENERATION)


TABLES = (Table("bridge", text=("first", "second"), erasure=_forget_all),)
