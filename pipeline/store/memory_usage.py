"""What importance follows from: how a memory is used, on which days anything happened, and what holds it here."""

import json
from collections.abc import Iterable, Mapping, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from pipeline.records import Tier
from pipeline.store.goals import UNFINISHED


class Usage(NamedTuple):
    """How a memory has been used.

    `lasting` marks what does not fade: what is pinned, and a keyed fact that holds or will. `given` is the importance
    that it had before any decay. `used` and `written` are Julian days, `used` of the last time that anybody wrote,
    changed or recalled it.
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
# What was merged away speaks through the one that it went into, so that the edge between the two holds neither.
_LOOSE = """
    archived_at IS NULL AND candidate = 0 AND pinned = 0 AND subject IS NULL
    AND max(created_at, occurred_at, updated_at, coalesce(recalled_at, '')) <= :used_by
    AND NOT (kind = 'goal' AND coalesce(json_extract(details, '$.status'), 'open')
        IN (SELECT value FROM json_each(:unfinished)))
    AND NOT EXISTS (SELECT 1 FROM edge e JOIN memory other ON other.seq = e.to_seq
        WHERE e.from_seq = m.seq AND e.kind <> 'next_in_session'
        AND NOT (e.kind = 'supersedes' AND other.merged_into IS NOT DISTINCT FROM m.seq))
    AND NOT EXISTS (SELECT 1 FROM edge e WHERE e.to_seq = m.seq AND e.kind NOT IN ('next_in_session', 'supersedes'))
    AND NOT EXISTS (SELECT 1 FROM arc_member am JOIN arc a ON a.seq = am.arc_seq
        WHERE am.memory_seq = m.seq AND a.status = 'active')
    AND NOT (kind IN ('code', 'document')
        AND EXISTS (SELECT 1 FROM ingest_memory l WHERE l.memory_seq = m.seq AND l.given = 1))
"""


def page(db: Connection, at: str, after_seq: int, limit: int) -> list[Usage]:
    """List how the active memories above a row number are used as of a moment, in row order."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM memory WHERE {_ACTIVE} AND seq > :after ORDER BY seq LIMIT :limit",  # noqa: S608 - constant text
        {"at": at, "after": after_seq, "limit": limit},
    )
    return [Usage(*row) for row in rows]


def of(db: Connection, at: str, seq: int) -> Usage | None:
    """Return how a memory, archived or not, is used as of a moment."""
    row = db.execute(f"SELECT {_COLUMNS} FROM memory WHERE seq = :seq", {"at": at, "seq": seq}).fetchone()  # noqa: S608 - constant text
    return None if row is None else Usage(*row)


def get_recalled_at(db: Connection, seq: int) -> str | None:
    """Return when a memory was last recalled, None for never."""
    row = db.execute("SELECT recalled_at FROM memory WHERE seq = ?", (seq,)).fetchone()
    return None if row is None else row[0]


def list_loose(db: Connection, at: str, used_by: str, after_seq: int, limit: int) -> list[Usage]:
    """List what nothing holds and nobody used since a moment, above a row number, in row order.

    Pinned memories, keyed facts, unfinished goals, members of an active arc, both ends of an edge, and what stands in
    code and documents that are kept in sync are held.
    """
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM memory m WHERE {_LOOSE} AND seq > :after ORDER BY seq LIMIT :limit",  # noqa: S608 - constant text
        {"at": at, "used_by": used_by, "unfinished": json.dumps(UNFINISHED), "after": after_seq, "limit": limit},
    )
    return [Usage(*row) for row in rows]


def list_still_loose(db: Connection, at: str, used_by: str, known: Sequence[Usage]) -> list[Usage]:
    """Return those of some loose memories of which nothing has changed."""
    seqs = json.dumps([usage.seq for usage in known])
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM memory m WHERE {_LOOSE} "  # noqa: S608 - constant text
        "AND seq IN (SELECT CAST(value AS BIGINT) FROM json_each(:seqs)) ORDER BY seq",
        {"at": at, "used_by": used_by, "unfinished": json.dumps(UNFINISHED), "seqs": seqs},
    )
    same = set(known)
    return [usage for usage in (Usage(*row) for row in rows) if usage in same]


def set_importance(db: Connection, usage: Usage, importance: float, tier: Tier) -> bool:
    """Give a memory what follows from its usage; return False when it was written to meanwhile.

    Its time of change stays: a job is no use.
    """
    cursor = db.execute(
        "UPDATE memory SET given_importance = coalesce(given_importance, importance), importance = ?, tier = ? "
        "WHERE seq = ? AND updated_at = ? AND archived_at IS NULL",
        (importance, tier, usage.seq, usage.updated_at),
    )
    return cursor.rowcount == 1


def add_accesses(db: Connection, counts: Mapping[int, int], at: str) -> int:
    """Count recalls by row number and note when; return how many memories there were."""
    cursor = db.executemany(
        "UPDATE memory SET recall_count = recall_count + ?, recalled_at = max(coalesce(recalled_at, ''), ?) "
        "WHERE seq = ?",
        [(count, at, seq) for seq, count in counts.items()],
    )
    return int(cursor.rowcount)


def active_days(db: Connection) -> list[float]:
    """List the days, as Julian days at midnight, on which anything was written or last recalled, in order."""
    rows: Iterable[tuple[float]] = db.execute(
        "SELECT julianday(day) FROM (SELECT substr(created_at, 1, 10) AS day FROM memory "
        "UNION SELECT substr(recalled_at, 1, 10) FROM memory WHERE recalled_at IS NOT NULL) days ORDER BY day"
    )
    return [row[0] for row in rows]


def count(db: Connection) -> int:
    """Count the active memories."""
    return int(db.execute("SELECT count(*) FROM memory WHERE archived_at IS NULL AND candidate = 0").fetchone()[0])


def count_archived_since(db: Connection, actor: str, at: str, most: int) -> int:
    """Count what an actor archived since a moment, as far as a number."""
    row = db.execute(
        "SELECT count(*) FROM "
        "(SELECT at FROM audit WHERE actor = ? AND action = 'archive' ORDER BY seq DESC LIMIT ?) acts WHERE at >= ?",
        (actor, most, at),
    ).fetchone()
    return int(row[0])
