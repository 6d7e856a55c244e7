"""The access log: when each person read or wrote which memories, by id, never by text.

Stored with the people; limited in days and rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from sqlite3 import Connection

from pipeline.store.rows import Rows

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


_ENTRIES = Rows(AccessEntry, "access", request_id="request", token_id="token")  # noqa: S106 - a column


def add(db: Connection, entries: Iterable[AccessEntry]) -> None:
    """Store entries."""
    shortened = (replace(entry, memory_ids=entry.memory_ids[:MAX_IDS_PER_ENTRY]) for entry in entries)
    db.executemany(_ENTRIES.insert, map(_ENTRIES.values, shortened))


def prune(db: Connection, before: str, max_rows: int = MAX_LOG_ROWS) -> None:
    """Delete entries before a time, and the oldest entries beyond a number."""
    db.execute("DELETE FROM access WHERE at < ? OR seq <= (SELECT max(seq) FROM access) - ?", (before, max_rows))


def copy(source: Connection, target: Connection) -> None:
    """Copy every entry, with its row number, into an empty log."""
    target.executemany(
        f"INSERT INTO access ({_ENTRIES.columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - constant text
        source.execute(f"{_ENTRIES.select} ORDER BY seq"),
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
    rows = db.execute(
        f"{_ENTRIES.select} {where} ORDER BY seq DESC LIMIT ?",
        (*values.values(), limit),
    )
    return _ENTRIES.read_all(rows)
