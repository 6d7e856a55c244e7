"""Invariants of the store: rows that violate them, and the removal of violating derived rows.

Every check reads first and writes only the violating rows, by key and under the same condition: a healthy store is
not written to, and a write is short.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import SQLITE_CORRUPT, Connection, DatabaseError

from pipeline.kernel.records import Kind, ScopeKind, Source, Tier, Trust
from pipeline.kernel.store import changes, meta
from pipeline.kernel.store.driver import sqlite_errors
from pipeline.kernel.store.rows import Table, find_row, is_gone, list_rows, quote_values

# Number of violating rows to process per batch.
BATCH = 500
Key = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """Rows that cannot be derived again; `select` returns a name for each violating row."""

    name: str
    says: str
    select: str


_FACT = "archived_at IS NULL AND candidate = 0 AND subject IS NOT NULL"
_JSON = " AND ".join(f"json_valid({column})" for column in ("tags", "metadata", "details"))

GIVEN: tuple[Given, ...] = (
    Given(
        "impossible_memories",
        "have an invalid value",
        "SELECT id FROM memory WHERE NOT ("  # noqa: S608 - constant text
        f"kind IN ({quote_values(Kind)}) AND scope_kind IN ({quote_values(ScopeKind)}) "
        f"AND source IN ({quote_values(Source)}) AND trust IN ({quote_values(Trust)}) "
        f"AND tier IN ({quote_values(Tier)}) AND {_JSON} "
        "AND (anchor IS NULL OR json_valid(anchor)) AND importance BETWEEN 0 AND 1 "
        "AND (subject IS NULL) = (attribute IS NULL) AND (valid_to IS NULL OR valid_from <= valid_to))",
    ),
    Given(
        "overlapping_facts",
        "overlap the next value of the same key",
        "SELECT id FROM (SELECT id, valid_to, lead(valid_from) OVER (PARTITION BY subject, attribute, scope_kind, "  # noqa: S608 - constant text
        f"scope_id ORDER BY valid_from, seq) AS next FROM memory WHERE {_FACT}) facts "
        "WHERE next IS NOT NULL AND (valid_to IS NULL OR valid_to > next)",
    ),
    Given(
        "lost_survivors",
        "were merged into a memory that is gone",
        f"SELECT m.id FROM memory m WHERE m.merged_into IS NOT NULL AND {is_gone('m.merged_into')}",  # noqa: S608 - constant text
    ),
    Given(
        "lost_histories",
        "are entries of the history of a memory that is gone",
        f"SELECT seq FROM history WHERE {is_gone('history.memory_seq')}",  # noqa: S608 - constant text
    ),
    Given(
        "dead_letters",
        "failed permanently; retry them with `reverie jobs queue retry`",
        "SELECT stage || ' of ' || memory_seq FROM work WHERE dead = 1",
    ),
)


def list_broken_rows(db: Connection, table: Table) -> list[Key]:
    """Return the keys of some rows that violate a rule."""
    return db.execute(
        f"SELECT {', '.join(table.key)} FROM {table.name} WHERE {table.orphan_condition} LIMIT ?",  # noqa: S608 - constant text
        (BATCH,),
    ).fetchall()


def remove_rows(db: Connection, keys: Sequence[Key], table: Table) -> int:
    """Delete the rows that still violate the rule; return their number."""
    chosen = " AND ".join(f"{column} = ?" for column in table.key)
    statement = f"DELETE FROM {table.name} WHERE {chosen} AND ({table.orphan_condition})"  # noqa: S608 - constant text
    return sum(db.execute(statement, key).rowcount for key in keys)


def list_named_rows(db: Connection, rule: Given) -> list[str]:
    """Return names of the rows that violate a rule."""
    return [str(row[0]) for row in db.execute(rule.select)]


def list_lost_mentions(db: Connection) -> list[int]:
    """Return some row numbers with mentions but without a memory."""
    condition = is_gone("mention.memory_seq")
    return list_rows(db, int, f"SELECT DISTINCT memory_seq FROM mention WHERE {condition} LIMIT ?", (BATCH,))  # noqa: S608


def list_segment_only(db: Connection) -> list[int]:
    """List the memories that only the segment makes searchable."""
    return list_rows(
        db,
        int,
        "SELECT seq FROM memory WHERE archived_at IS NULL AND candidate = 0 "
        "AND NOT EXISTS (SELECT 1 FROM tail WHERE tail.seq = memory.seq)",
    )


def list_ahead_of_log(db: Connection) -> list[str]:
    """List values that refer to a later change than the change log has; the next changes would be overlooked."""
    last = changes.generation(db)
    requested = meta.get(db, meta.SEGMENT_WANTED)
    names = []
    if requested is not None and int(requested) > last:
        names.append(meta.SEGMENT_WANTED)
    # The next segment corrects this.
    if requested is None and meta.get_int(db, meta.SEGMENT_COVERS) > last:
        names.append(meta.SEGMENT_COVERS)
    if db.execute("SELECT 1 FROM tail WHERE change_seq > ? LIMIT 1", (last,)).fetchone():
        names.append("tail")
    return names


def ask_for_segment(db: Connection) -> None:
    """Request a new segment and reset values ahead of the change log; keep a purge's request."""
    last = changes.generation(db)
    db.execute("DELETE FROM tail WHERE change_seq > ?", (last,))
    requested = meta.get(db, meta.SEGMENT_WANTED)
    if requested is None or int(requested) > last:
        meta.put(db, meta.SEGMENT_WANTED, "0")


def damage(db: Connection) -> list[str]:
    """Return SQLite's integrity problems; reads the entire file."""
    try:
        return [row[0] for row in db.execute("PRAGMA quick_check(5)") if row[0] != "ok"]
    except sqlite_errors(DatabaseError) as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != SQLITE_CORRUPT:
            raise
        return [str(error)]


def last_counts(db: Connection, job: str) -> Mapping[str, int]:
    """Return the counts of the last finished run of a job."""
    newest = "SELECT counts FROM job_run WHERE name = ? AND ended_at IS NOT NULL ORDER BY seq DESC LIMIT 1"
    counts: Mapping[str, int] = json.loads(find_row(db, str, newest, (job,)) or "{}")
    return counts
