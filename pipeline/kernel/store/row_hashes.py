"""Hashes of memories' rows: every commit updates them, so another program changed a row that does not match its hash.

Background jobs change the counters, importance and tier of many memories at once, so the hash does not cover them.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Any

from pipeline.kernel.store.database import WriteConnection
from pipeline.kernel.store.rows import list_rows

# A change of this list or of `compute` needs a migration on both engines.
COLUMNS = (
    "id",
    "content",
    "content_hash",
    "kind",
    "scope_kind",
    "scope_id",
    "tags",
    "metadata",
    "source",
    "trust",
    "pinned",
    "session_id",
    "created_at",
    "occurred_at",
    "archived_at",
    "details",
    "anchor",
    "branch",
    "candidate",
    "instructs",
    "subject",
    "attribute",
    "valid_from",
    "valid_to",
    "merged_into",
    "expires_at",
    "sensitivity",
    "author",
    "shared_from",
)
_NAMES = ", ".join(COLUMNS)
_SOME = f"SELECT seq, {_NAMES} FROM memory WHERE seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"  # noqa: S608 - constant columns
_ALL = f"SELECT row_hash, {_NAMES} FROM memory ORDER BY seq"  # noqa: S608 - constant columns
# Maximum number of memories per statement.
AT_ONCE = 1000


def compute(values: Iterable[Any]) -> str:
    """Return the hash of a row from its values in the order of `COLUMNS`."""
    # The length of each value keeps text from moving to the next column.
    texts = ["-" if value is None else f"{len(text := str(value))}:{text}" for value in values]
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:32]


def update_on_commit(db: Connection, seq: int) -> None:
    """Update the hash of a row when its transaction commits."""
    if isinstance(db, WriteConnection):
        db.changed_rows.add(seq)
    else:
        update(db, [seq])


def update_changed(db: WriteConnection) -> None:
    """Update the hashes of the rows that a transaction changed, before it commits."""
    if db.changed_rows:
        update(db, sorted(db.changed_rows))


def update(db: Connection, seqs: Sequence[int]) -> None:
    """Update the hashes of some rows."""
    for start in range(0, len(seqs), AT_ONCE):
        rows = db.execute(_SOME, (json.dumps(seqs[start : start + AT_ONCE]),)).fetchall()
        db.executemany("UPDATE memory SET row_hash = ? WHERE seq = ?", [(compute(row[1:]), row[0]) for row in rows])


def list_edited(db: Connection) -> list[str]:
    """List the ids of memories that another program changed or added."""
    return [row[1] for row in db.execute(_ALL) if compute(row[1:]) != row[0]]


def list_damage(db: Connection) -> list[str]:
    """List the problems of a file's pages, or else the memories that do not match their hashes."""
    problems = [row[0] for row in db.execute("PRAGMA integrity_check(5)") if row[0] != "ok"]
    return problems or [f"memory {memory_id} does not match its hash" for memory_id in list_edited(db)]


def list_deleted(db: Connection) -> list[str]:
    """List the ids of memories that another program deleted."""
    return list_rows(
        db,
        str,
        "SELECT memory_id FROM change WHERE op = 'create' EXCEPT SELECT memory_id FROM change WHERE op = 'purge' "
        "EXCEPT SELECT id FROM memory ORDER BY 1",
    )
