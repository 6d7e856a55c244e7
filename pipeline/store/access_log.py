"""The access log: which person read and wrote what, and when; ids of memories, never a word of one.

Kept beside the people, for so many days and so many rows at most.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

KEPT_ROWS = 1_000_000
# Of a long list, so many ids; how many there were is told beside them.
KEPT_IDS = 100

CREATE = (
    "CREATE TABLE access (seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, request TEXT NOT NULL, "
    "person TEXT NOT NULL, token TEXT, workspace TEXT, action TEXT NOT NULL, status INTEGER NOT NULL, "
    "memory_ids TEXT NOT NULL, memories INTEGER NOT NULL)"
)


@dataclass(frozen=True, slots=True)
class AccessEntry:
    """One request of a person: by which token, in which workspace, to which route, answered how, about which memories.

    Without a token it came from a browser that is signed in.
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
    """Keep entries."""
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
                json.dumps(entry.memory_ids[:KEPT_IDS]),
                entry.memories,
            )
            for entry in entries
        ],
    )


def prune(db: Connection, before: str, kept: int = KEPT_ROWS) -> None:
    """Delete what is from before a moment, and the oldest of what is too much."""
    db.execute("DELETE FROM access WHERE at < ? OR seq <= (SELECT max(seq) FROM access) - ?", (before, kept))


def copy(source: Connection, target: Connection) -> None:
    """Copy every entry, by its row number, into a log that holds none."""
    columns = "seq, at, request, person, token, workspace, action, status, memory_ids, memories"
    target.executemany(
        f"INSERT INTO access ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - constant text
        source.execute(f"SELECT {columns} FROM access ORDER BY seq"),  # noqa: S608
    )


@dataclass(frozen=True, slots=True)
class AccessQuery:
    """Whose requests are sought, to which workspace, since when; None for all."""

    person: str | None = None
    workspace: str | None = None
    since: str | None = None


def page(db: Connection, query: AccessQuery, limit: int, before: int | None) -> list[AccessEntry]:
    """List entries, the latest first, from below a row number."""
    wanted = {"person = ?": query.person, "workspace = ?": query.workspace, "at >= ?": query.since, "seq < ?": before}
    given = {condition: value for condition, value in wanted.items() if value is not None}
    where = f"WHERE {' AND '.join(given)}" if given else ""
    columns = "at, request, person, token, workspace, action, status, memory_ids, memories, seq"
    rows = db.execute(
        f"SELECT {columns} FROM access {where} ORDER BY seq DESC LIMIT ?",  # noqa: S608 - constant but for its places
        (*given.values(), limit),
    )
    return [_entry(row) for row in rows]


def _entry(row: Sequence[Any]) -> AccessEntry:
    at, request_id, person, token_id, workspace, action, status, memory_ids, memories, seq = row
    ids = tuple(json.loads(memory_ids))
    return AccessEntry(at, request_id, person, token_id, workspace, action, status, ids, memories, seq)
