"""The audit trail: merges, archivals, ended facts, sharing, the actor, and whether it was undone."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Connection
from typing import Any

from ulid import ULID

from pipeline.kernel.store.rows import Rows, Table


class AuditAction(StrEnum):
    """The type of an action."""

    MERGE = "merge"
    ARCHIVE = "archive"
    SHARE = "share"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An action on a memory; ids only, never text. `other_id` is a merge's survivor, or an ended fact's new value."""

    seq: int
    id: str
    at: str
    actor: str
    action: AuditAction
    memory_id: str
    other_id: str | None
    detail: Mapping[str, Any]
    undone_at: str | None


_ENTRIES = Rows(AuditEntry, "audit")


def add(
    db: Connection,
    at: str,
    actor: str,
    action: AuditAction,
    memory_id: str,
    other_id: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> str:
    """Record an action and return its id."""
    entry_id = str(ULID())
    db.execute(
        "INSERT INTO audit (id, at, actor, action, memory_id, other_id, detail) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (entry_id, at, actor, action, memory_id, other_id, json.dumps(dict(detail or {}), ensure_ascii=False)),
    )
    return entry_id


def get(db: Connection, entry_id: str) -> AuditEntry | None:
    """Return an entry by id."""
    return _ENTRIES.fetch_one(db, "WHERE id = ?", (entry_id,))


def page(db: Connection, limit: int, before: int | None) -> list[AuditEntry]:
    """List entries, newest first."""
    return _ENTRIES.fetch(
        db, "WHERE seq < ? ORDER BY seq DESC LIMIT ?", (before if before is not None else 2**62, limit)
    )


def of(db: Connection, memory_id: str, limit: int) -> list[AuditEntry]:
    """List the actions on a memory, the last first."""
    return _ENTRIES.fetch(db, "WHERE memory_id = ? ORDER BY seq DESC LIMIT ?", (memory_id, limit))


def merge_of(db: Connection, memory_id: str) -> AuditEntry | None:
    """Return the action that merged a memory into another, None if it is not merged."""
    return _ENTRIES.fetch_one(
        db,
        "WHERE memory_id = ? AND action = ? AND undone_at IS NULL ORDER BY seq DESC LIMIT 1",
        (memory_id, AuditAction.MERGE),
    )


def list_later_merges(db: Connection, entry: AuditEntry) -> list[AuditEntry]:
    """List later merges into the same memory that were not undone, the first first."""
    return _ENTRIES.fetch(
        db,
        "WHERE other_id = ? AND action = ? AND undone_at IS NULL AND seq > ? ORDER BY seq",
        (entry.other_id, AuditAction.MERGE, entry.seq),
    )


def amend(db: Connection, entry_id: str, detail: Mapping[str, Any]) -> None:
    """Replace the details of an action."""
    db.execute("UPDATE audit SET detail = ? WHERE id = ?", (json.dumps(detail), entry_id))


def mark_undone(db: Connection, entry_id: str, at: str) -> None:
    """Mark an action as undone."""
    db.execute("UPDATE audit SET undone_at = ? WHERE id = ?", (at, entry_id))


TABLES = (Table("audit", text=("detail",), memory=("memory_id", "other_id"), erasure="detail = '{}'"),)
