"""The use of memories, active days, and references that keep a memory: the inputs of importance."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from sqlite3 import Connection
from typing import NamedTuple

from pipeline.kernel.records import Tier
from pipeline.kernel.registry import find_extensions
from pipeline.kernel.store.rows import find_row, list_rows


class Usage(NamedTuple):
    """How a memory was used.

    `lasting` marks memories without decay: pinned memories, and keyed facts that are or will be valid. `given` is the
    importance before decay. `used` and `written` are Julian days; `used` is the last day of a write, change or
    recall.
    """

    seq: int
    id: str
    kind: str
    tier: str
    lasting: bool
    importance: float
    given: float
    recalls: int
    repeats: int
    used: float
    written: float
    updated_at: str


_COLUMNS = (
    "seq, id, kind, tier, pinned = 1 OR (subject IS NOT NULL AND (valid_to IS NULL OR valid_to > :at)), "
    "importance, coalesce(given_importance, importance), recall_count, merge_count, "
    "julianday(max(created_at, occurred_at, updated_at, coalesce(recalled_at, ''))), julianday(created_at), updated_at"
)
_ACTIVE = "archived_at IS NULL AND candidate = 0"
# A merged memory is represented by its survivor, so the edge between the two does not keep either.
_LOOSE = """
    archived_at IS NULL AND candidate = 0 AND pinned = 0 AND subject IS NULL
    AND max(created_at, occurred_at, updated_at, coalesce(recalled_at, '')) <= :used_by
    AND NOT EXISTS (SELECT 1 FROM edge e JOIN memory other ON other.seq = e.to_seq
        WHERE e.from_seq = m.seq AND e.kind <> 'next_in_session'
        AND NOT (e.kind = 'supersedes' AND other.merged_into IS NOT DISTINCT FROM m.seq))
    AND NOT EXISTS (SELECT 1 FROM edge e WHERE e.to_seq = m.seq AND e.kind NOT IN ('next_in_session', 'supersedes'))
    AND NOT (kind IN ('code', 'document')
        AND EXISTS (SELECT 1 FROM ingest_memory l WHERE l.memory_seq = m.seq AND l.given = 1))
"""


@cache
def _loose() -> str:
    return "".join((_LOOSE, *(f" AND NOT ({condition})" for condition in find_extensions("IS_KEPT"))))


def page(db: Connection, at: str, after_seq: int, limit: int) -> list[Usage]:
    """List the usage of the active memories above a row number at a time, in row order."""
    return list_rows(
        db,
        Usage,
        f"SELECT {_COLUMNS} FROM memory WHERE {_ACTIVE} AND seq > :after ORDER BY seq LIMIT :limit",  # noqa: S608
        {"at": at, "after": after_seq, "limit": limit},
    )


def of(db: Connection, at: str, seq: int) -> Usage | None:
    """Return the usage of a memory, archived or not, at a time."""
    return find_row(db, Usage, f"SELECT {_COLUMNS} FROM memory WHERE seq = :seq", {"at": at, "seq": seq})  # noqa: S608


def get_recalled_at(db: Connection, seq: int) -> str | None:
    """Return when a memory was last recalled, None for never."""
    return find_row(db, str, "SELECT recalled_at FROM memory WHERE seq = ?", (seq,))


def list_unreferenced(db: Connection, at: str, used_by: str, after_seq: int, limit: int) -> list[Usage]:
    """List memories without references and without use since a time, above a row number, in row order.

    These are referenced: pinned memories, keyed facts, memories with edges, memories of code and documents that are
    kept in sync, and those that a feature keeps.
    """
    return list_rows(
        db,
        Usage,
        f"SELECT {_COLUMNS} FROM memory m WHERE {_loose()} AND seq > :after ORDER BY seq LIMIT :limit",  # noqa: S608
        {"at": at, "used_by": used_by, "after": after_seq, "limit": limit},
    )


def filter_unchanged(db: Connection, at: str, used_by: str, known: Sequence[Usage]) -> list[Usage]:
    """Return which of some unreferenced memories are unchanged."""
    seqs = json.dumps([usage.seq for usage in known])
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM memory m WHERE {_loose()} "  # noqa: S608 - constant text
        "AND seq IN (SELECT CAST(value AS BIGINT) FROM json_each(:seqs)) ORDER BY seq",
        {"at": at, "used_by": used_by, "seqs": seqs},
    )
    same = set(known)
    return [usage for usage in (Usage(*row) for row in rows) if usage in same]


def set_importance(db: Connection, usage: Usage, importance: float, tier: Tier) -> bool:
    """Set a memory's importance and tier; return False if it was written to in the meantime.

    Its change time stays, because this is no use of the memory.
    """
    return (
        db.execute(
            "UPDATE memory SET given_importance = coalesce(given_importance, importance), importance = ?, tier = ? "
            "WHERE seq = ? AND updated_at = ? AND archived_at IS NULL",
            (importance, tier, usage.seq, usage.updated_at),
        ).rowcount
        == 1
    )


def add_accesses(db: Connection, counts: Mapping[int, int], at: str) -> int:
    """Add numbers of recalls by row number, with their time; return the number of existing memories."""
    cursor = db.executemany(
        "UPDATE memory SET recall_count = recall_count + ?, recalled_at = max(coalesce(recalled_at, ''), ?) "
        "WHERE seq = ?",
        [(count, at, seq) for seq, count in counts.items()],
    )
    return int(cursor.rowcount)


def active_days(db: Connection) -> list[float]:
    """List the Julian days (midnight) with writes or last recalls, in order."""
    rows: Iterable[tuple[float]] = db.execute(
        "SELECT julianday(day) FROM (SELECT substr(created_at, 1, 10) AS day FROM memory "
        "UNION SELECT substr(recalled_at, 1, 10) FROM memory WHERE recalled_at IS NOT NULL) days ORDER BY day"
    )
    return [row[0] for row in rows]


def count(db: Connection) -> int:
    """Count the active memories."""
    return int(db.execute("SELECT count(*) FROM memory WHERE archived_at IS NULL AND candidate = 0").fetchone()[0])


def count_archived_since(db: Connection, actor: str, at: str, most: int) -> int:
    """Count the memories that an actor archived since a time, up to a number."""
    return (
        find_row(
            db,
            int,
            "SELECT count(*) FROM (SELECT at FROM audit WHERE actor = ? AND action = 'archive' "
            "ORDER BY seq DESC LIMIT ?) acts WHERE at >= ?",
            (actor, most, at),
        )
        or 0
    )
