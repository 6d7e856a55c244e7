"""The change log: every mutation in commit order, stamped by a hybrid logical clock.

The stamp is `<physical ms>-<counter>-<node>`, fixed width, so that text order is clock order (Kulkarni et al.,
"Logical Physical Clocks", 2014).
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from sqlite3 import Connection

from pipeline.store import meta

CREATE = "create"
MERGE = "merge"
EDIT = "edit"
ARCHIVE = "archive"
RESTORE = "restore"
PURGE = "purge"
CLOSE = "close"
RELATE = "relate"
# Importance alone: what fades changes the order of answers, and nothing that anybody said.
FADE = "fade"


def append(db: Connection, op: str, memory_ids: Sequence[str]) -> int:
    """Log one operation on some memories; return the change number of the first."""
    last = db.execute("SELECT seq, hlc FROM change ORDER BY seq DESC LIMIT 1").fetchone()
    first = 1 if last is None else last[0] + 1
    physical, counter = time.time_ns() // 1_000_000, 0
    if last is not None:
        last_physical, last_counter = (int(part) for part in last[1].split("-")[:2])
        if last_physical >= physical:
            physical, counter = last_physical, last_counter + 1
    node = meta.get(db, "node")
    db.executemany(
        "INSERT INTO change (seq, hlc, op, memory_id) VALUES (?, ?, ?, ?)",
        [
            (first + i, f"{physical:014d}-{counter + i:06d}-{node}", op, memory_id)
            for i, memory_id in enumerate(memory_ids)
        ],
    )
    return first


def happened(db: Connection, op: str, after: int) -> bool:
    """Tell whether an operation was logged after a change number."""
    return db.execute("SELECT 1 FROM change WHERE seq > ? AND op = ? LIMIT 1", (after, op)).fetchone() is not None


def first_at(db: Connection) -> datetime | None:
    """Return when the first change was made (UTC), None without any."""
    row = db.execute("SELECT hlc FROM change ORDER BY seq LIMIT 1").fetchone()
    return None if row is None else datetime.fromtimestamp(int(row[0].split("-")[0]) / 1000, UTC)


def generation(db: Connection) -> int:
    """Return the number of the last change; it grows with every mutation."""
    row = db.execute("SELECT seq FROM change ORDER BY seq DESC LIMIT 1").fetchone()
    return 0 if row is None else int(row[0])


def written(db: Connection) -> int:
    """Return the number of the last change that was more than fading."""
    row = db.execute("SELECT seq FROM change WHERE op <> ? ORDER BY seq DESC LIMIT 1", (FADE,)).fetchone()
    return 0 if row is None else int(row[0])
