"""The change log: every change in commit order, with a time stamp of the hybrid logical clock.

A stamp is `<physical ms>-<counter>-<node>` in fixed width, so that text order is clock order (Kulkarni et al.,
"Logical Physical Clocks", 2014).
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from sqlite3 import Connection

from pipeline.enums import EdgeKind, Source
from pipeline.store import meta

CREATE = "create"
# A memory that awaits review; `create` follows once it is accepted.
CANDIDATE = "candidate"
MERGE = "merge"
EDIT = "edit"
ARCHIVE = "archive"
RESTORE = "restore"
PURGE = "purge"
CLOSE = "close"
RELATE = "relate"
# A relation by which another memory supersedes this one.
SUPERSEDE = "supersede"
# Only the importance: decay changes the order of results, but no content.
FADE = "fade"


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """An operation on a memory, which may be purged since."""

    number: int
    op: str
    memory_id: str


def append(db: Connection, op: str, memory_ids: Sequence[str], about: str | None = None) -> int:
    """Log an operation on some memories; return the change number of the first.

    `about` is what the log keeps of purged memories.
    """
    last = db.execute("SELECT seq, hlc FROM change ORDER BY seq DESC LIMIT 1").fetchone()
    first = 1 if last is None else last[0] + 1
    physical, counter = time.time_ns() // 1_000_000, 0
    if last is not None:
        last_physical, last_counter = (int(part) for part in last[1].split("-")[:2])
        if last_physical >= physical:
            physical, counter = last_physical, last_counter + 1
    node = meta.get(db, "node")
    db.executemany(
        "INSERT INTO change (seq, hlc, op, memory_id, about) VALUES (?, ?, ?, ?, ?)",
        [
            (first + i, f"{physical:014d}-{counter + i:06d}-{node}", op, memory_id, about)
            for i, memory_id in enumerate(memory_ids)
        ],
    )
    return first


def append_link(db: Connection, kind: EdgeKind, memory_id: str, other_ids: Sequence[str]) -> None:
    """Log new edges of a kind from a memory to other memories."""
    append(db, RELATE, [memory_id])
    append(db, SUPERSEDE if kind is EdgeKind.SUPERSEDES else RELATE, other_ids)


def has_logged(db: Connection, op: str, after: int) -> bool:
    """Return whether an operation was logged after a change number."""
    return db.execute("SELECT 1 FROM change WHERE seq > ? AND op = ? LIMIT 1", (after, op)).fetchone() is not None


def after(db: Connection, number: int, limit: int) -> list[LoggedChange]:
    """List the changes after a change number, the first first, without decay."""
    rows = db.execute(
        "SELECT seq, op, memory_id FROM change WHERE seq > ? AND op <> ? ORDER BY seq LIMIT ?", (number, FADE, limit)
    )
    return [LoggedChange(*row) for row in rows]


def count_imported(db: Connection, since: datetime, until: datetime) -> dict[str, int]:
    """Count the imported memories of the changes in a time by operation, without candidates."""
    rows = db.execute(
        f"SELECT op, count(DISTINCT memory_id) FROM change WHERE {_SINCE} AND hlc < ? "  # noqa: S608 - constant text
        f"AND memory_id IN (SELECT id FROM memory WHERE {_IMPORTED} AND candidate = 0) GROUP BY op",
        (_stamp(since), _stamp(until)),
    )
    return dict(rows.fetchall())


def list_between(
    db: Connection, since: datetime, until: datetime, ops: Sequence[str], own_only: Sequence[str], limit: int
) -> list[tuple[datetime, LoggedChange]]:
    """List the changes of some operations in a time, with their times (UTC), the last first.

    Of the operations in `own_only`, those on imported memories are left out.
    """
    rows = db.execute(
        f"SELECT hlc, seq, op, memory_id FROM change WHERE {_SINCE} AND hlc < ? "  # noqa: S608 - constant text
        "AND op IN (SELECT value FROM json_each(?)) AND NOT (op IN (SELECT value FROM json_each(?)) "
        f"AND memory_id IN (SELECT id FROM memory WHERE {_IMPORTED})) ORDER BY seq DESC LIMIT ?",
        (_stamp(since), _stamp(until), json.dumps(list(ops)), json.dumps(list(own_only)), limit),
    )
    return [(_parse_hlc_time(hlc), LoggedChange(number, op, memory_id)) for hlc, number, op, memory_id in rows]


def is_purged_since(db: Connection, memory_id: str, moment: datetime) -> bool:
    """Return whether a memory was purged here at or after a time."""
    sought = f"SELECT 1 FROM change WHERE {_SINCE} AND op = ? AND memory_id = ? LIMIT 1"  # noqa: S608 - constant text
    return db.execute(sought, (_stamp(moment), PURGE, memory_id)).fetchone() is not None


_IMPORTED = f"source = '{Source.IMPORT}'"
# Change numbers grow with the clock: the scan back from the last change ends at the first older one.
_SINCE = "seq > coalesce((SELECT seq FROM change WHERE hlc < ? ORDER BY seq DESC LIMIT 1), 0)"


def _stamp(moment: datetime) -> str:
    return f"{int(moment.timestamp() * 1000):014d}"


def _parse_hlc_time(hlc: str) -> datetime:
    return datetime.fromtimestamp(int(hlc.partition("-")[0]) / 1000, UTC)


def first_at(db: Connection) -> datetime | None:
    """Return the time of the first change (UTC), None without changes."""
    row = db.execute("SELECT hlc FROM change ORDER BY seq LIMIT 1").fetchone()
    return None if row is None else _parse_hlc_time(row[0])


def last_stamp(db: Connection) -> str | None:
    """Return the stamp of the last change, None without changes."""
    row = db.execute("SELECT hlc FROM change ORDER BY seq DESC LIMIT 1").fetchone()
    return None if row is None else str(row[0])


def generation(db: Connection) -> int:
    """Return the number of the last change; it grows with every mutation."""
    row = db.execute("SELECT seq FROM change ORDER BY seq DESC LIMIT 1").fetchone()
    return 0 if row is None else int(row[0])


def last_written(db: Connection) -> int:
    """Return the number of the last change other than decay."""
    row = db.execute("SELECT seq FROM change WHERE op <> ? ORDER BY seq DESC LIMIT 1", (FADE,)).fetchone()
    return 0 if row is None else int(row[0])
