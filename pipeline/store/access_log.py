"""The access log: when each person read or wrote which memories, by id, never by text.

Stored with the people; limited in days and rows.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

MAX_LOG_ROWS = 1_000_000
# Maximum number of ids per entry; their total number is stored as well.
MAX_IDS_PER_ENTRY = 100


@dataclass(frozen=True, slots=True)
class AccessEntry:
    """One request of a person: token, workspace, route, status, and the memories concerned.

    A request without a token came from a signed-in browser.
    """

    at: str
    request_id: str
    person: str
    token_id: str | None
    workspace: str | None
    action: str
    status: int
    memory_ids: tuple[str, ...] = ()
    memories: int = 0
    seq: int = 0


def add(db: Connection, entries: Iterable[AccessEntry]) -> None:
    """Store entries."""
    db.executemany(
        "INSERT INTO access (at, request, person, token, workspace, action, status, memory_ids, memories) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                entry.at,
                entry.request_id,
                entry.person,
                entry.token_id,
                entry.workspace,
                entry.action,
                entry.status,
                json.dumps(entry.memory_ids[:MAX_IDS_PER_ENTRY]),
                entry.memories,
            )
            for entry in entries
        ],
    )


def prune(db: Connection, before: str, max_rows: int = MAX_LOG_ROWS) -> None:
    """Delete entries before a time, and the oldest entries beyond a number."""
    db.execute("DELETE FROM access WHERE at < ? OR seq <= (SELECT max(seq) FROM access) - ?", (before, max_rows))


def copy(source: Connection, target: Connection) -> None:
    """Copy every entry, with its row number, into an empty log."""
    columns = "seq, at, request, person, token, workspace, action, status, memory_ids, memories"
    target.executemany(
        f"INSERT INTO access ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - constant text
        source.execute(f"SELECT {columns} FROM access ORDER BY seq"),  # noqa: S608
    )


@dataclass(frozen=True, slots=True)
class AccessQuery:
    """Filter by person, workspace and start time; None means all."""

    person: str | None = None
    workspace: str | None = None
    since: str | None = None


def page(db: Connection, query: AccessQuery, limit: int, before: int | None) -> list[AccessEntry]:
    """List entries, the latest first, below a row number."""
    conditions = {
        "person = ?": query.person,
        "workspace = ?": query.workspace,
        "at >= ?": query.since,
        "seq < ?": before,
    }
    values = {condition: value for condition, value in conditions.items() if value is not None}
    where = f"WHERE {' AND '.join(values)}" if values else ""
    columns = "at, request, person, token, workspace, action, status, memory_ids, memories, seq"
    rows = db.execute(
        f"SELECT {columns} FROM access {where} ORDER BY seq DESC LIMIT ?",  # noqa: S608 - constant but for its places
        (*values.values(), limit),
    )
    return [_entry(row) for row in rows]


def _entry(row: Sequence[Any]) -> AccessEntry:
    at, request_id, person, token_id, workspace, action, status, memory_ids, memories, seq = row
    ids = tuple(json.loads(memory_ids))
    return AccessEntry(at, request_id, person, token_id, workspace, action, status, ids, memories, seq)
