"""Vocabulary bridges: pairs of names for one thing, and the memory that each was mined from.

Mined bridges are derived data. A bridge that a user removed keeps its row, so that no later run mines it again. A
bridge counts only while the memory that it was mined from is visible to the entire workspace and not private.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Connection
from typing import Any

from pipeline.records import Filter, Scope, Viewer
from pipeline.store import meta
from pipeline.store.visibility import condition

# Bridges are mined from these memories only: those that every user of the workspace may see without asking for them.
PUBLIC = Filter(scope=Scope(), viewer=Viewer(only_normal=True))


class BridgeSource(StrEnum):
    """How a bridge was found, the surest first."""

    MERGE = "merge"
    DEFINITION = "definition"
    SHORT_FORM = "short_form"
    CO_MENTION = "co_mention"
    NEIGHBOR = "neighbor"


@dataclass(frozen=True, slots=True)
class MinedBridge:
    """Two names as they are written, how they were found, and the row number of a memory that shows it."""

    first: str
    second: str
    source: BridgeSource
    memory_seq: int

    @property
    def id(self) -> str:
        """Return the id, which depends on the names alone."""
        names = sorted((self.first.casefold(), self.second.casefold()))
        return "b" + hashlib.sha256("\0".join(names).encode()).hexdigest()[:15]


@dataclass(frozen=True, slots=True)
class Bridge:
    """A stored bridge."""

    seq: int
    id: str
    first: str
    second: str
    source: BridgeSource
    memory_id: str
    at: str
    removed_at: str | None
    removed_by: str | None


_SELECT = (
    "SELECT b.seq, b.id, b.first, b.second, b.source, m.id, b.at, b.removed_at, b.removed_by FROM bridge b "
    "JOIN memory m ON m.seq = b.memory_seq"
)


def replace(db: Connection, mined: Sequence[MinedBridge], at: str) -> bool:
    """Replace all bridges that no user removed; return whether they differ from the stored ones."""
    removed = {row[0] for row in db.execute("SELECT id FROM bridge WHERE removed_at IS NOT NULL")}
    wanted = {bridge.id: bridge for bridge in mined if bridge.id not in removed}
    rows = db.execute("SELECT id, source, memory_seq FROM bridge WHERE removed_at IS NULL").fetchall()
    stored = {bridge_id: (source, seq) for bridge_id, source, seq in rows}
    changed = {key: bridge for key, bridge in wanted.items() if stored.get(key) != (bridge.source, bridge.memory_seq)}
    gone = (stored.keys() - wanted.keys()) | (stored.keys() & changed.keys())
    if not (gone or changed):
        return False
    db.executemany("DELETE FROM bridge WHERE id = ?", [(bridge_id,) for bridge_id in sorted(gone)])
    db.executemany(
        "INSERT INTO bridge (id, first, second, source, memory_seq, at) VALUES (?, ?, ?, ?, ?, ?)",
        [(key, b.first, b.second, b.source, b.memory_seq, at) for key, b in changed.items()],
    )
    meta.increment(db, meta.BRIDGES_GENERATION)
    return True


def list_active(db: Connection) -> list[Bridge]:
    """List the bridges that recall uses, the surest first."""
    order = list(BridgeSource)
    shown, values = _shown(removed=False)
    rows = db.execute(f"{_SELECT} WHERE {shown} ORDER BY b.seq", values)
    return sorted(map(_bridge, rows), key=lambda bridge: order.index(bridge.source))


def page(db: Connection, *, removed: bool, limit: int, before: int | None) -> list[Bridge]:
    """List bridges, newest first: those that recall uses, or those that a user removed."""
    shown, values = _shown(removed=removed)
    rows = db.execute(
        f"{_SELECT} WHERE {shown} AND b.seq < ? ORDER BY b.seq DESC LIMIT ?",
        (*values, before if before is not None else 2**62, limit),
    )
    return [_bridge(row) for row in rows]


def _shown(*, removed: bool) -> tuple[str, list[Any]]:
    """Return the condition for bridges of memories that the workspace may see, and its values."""
    clause, values = condition(PUBLIC)
    state = "b.removed_at IS NOT NULL" if removed else "b.removed_at IS NULL"
    return f"{state} AND b.memory_seq IN (SELECT seq FROM memory WHERE {clause})", values  # noqa: S608 - constant text


def list_public_texts(db: Connection, before: int | None, limit: int) -> list[tuple[int, str]]:
    """List the row numbers and texts of the memories that bridges are mined from, newest first."""
    clause, values = condition(PUBLIC)
    rows = db.execute(
        f"SELECT seq, content FROM memory WHERE {clause} AND seq < ? ORDER BY seq DESC LIMIT ?",  # noqa: S608 - constant
        (*values, before if before is not None else 2**62, limit),
    )
    return [(seq, content) for seq, content in rows]


def get(db: Connection, bridge_id: str) -> Bridge | None:
    """Return a bridge by id, None if its memory is not visible to the entire workspace."""
    clause, values = condition(PUBLIC)
    row = db.execute(
        f"{_SELECT} WHERE b.id = ? AND b.memory_seq IN (SELECT seq FROM memory WHERE {clause})",  # noqa: S608 - constant
        (bridge_id, *values),
    ).fetchone()
    return None if row is None else _bridge(row)


def remove(db: Connection, bridge_id: str, actor: str, at: str) -> None:
    """Mark a bridge as removed by a user."""
    db.execute("UPDATE bridge SET removed_at = ?, removed_by = ? WHERE id = ?", (at, actor, bridge_id))
    meta.increment(db, meta.BRIDGES_GENERATION)


def restore(db: Connection, bridge_id: str) -> None:
    """Take back the removal of a bridge."""
    db.execute("UPDATE bridge SET removed_at = NULL, removed_by = NULL WHERE id = ?", (bridge_id,))
    meta.increment(db, meta.BRIDGES_GENERATION)


def purge(db: Connection, memory_seq: int) -> None:
    """Delete the bridges after a purge: any of them may contain a word of a purged memory.

    A removal stays if other memories contain its names; the next run mines the rest again.
    """
    if db.execute("SELECT 1 FROM bridge LIMIT 1").fetchone() is None:
        return
    db.execute("DELETE FROM bridge WHERE removed_at IS NULL")
    rows = db.execute("SELECT id, first, second, source FROM bridge WHERE memory_seq = ?", (memory_seq,)).fetchall()
    for bridge_id, first, second, source in rows:
        holders = [_find_holder(db, name) for name in (first, second)]
        # One name of a common short form is in the list and not in a memory.
        if all(holders) or (source == BridgeSource.SHORT_FORM and any(holders)):
            db.execute("UPDATE bridge SET memory_seq = ? WHERE id = ?", (next(filter(None, holders)), bridge_id))
        else:
            db.execute("DELETE FROM bridge WHERE id = ?", (bridge_id,))
    meta.increment(db, meta.BRIDGES_GENERATION)


def _find_holder(db: Connection, name: str) -> int | None:
    """Return the row number of a memory that the workspace may see and that contains a name."""
    clause, values = condition(PUBLIC)
    pattern = "".join(f"!{letter}" if letter in "!%_" else letter for letter in name.casefold())
    row = db.execute(
        f"SELECT seq FROM memory WHERE {clause} AND lower(content) LIKE ? ESCAPE '!' LIMIT 1",  # noqa: S608 - constant
        (*values, f"%{pattern}%"),
    ).fetchone()
    return None if row is None else int(row[0])


def _bridge(row: Sequence[Any]) -> Bridge:
    seq, bridge_id, first, second, source, *rest = row
    return Bridge(seq, bridge_id, first, second, BridgeSource(source), *rest)
