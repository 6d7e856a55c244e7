"""The change log: every change in commit order, with a time stamp of the hybrid logical clock.

A stamp is `<physical ms>-<counter>-<node>` in fixed width, so that text order is clock order (Kulkarni et al.,
"Logical Physical Clocks", 2014). A viewer sees part of the log, and the finished runs of jobs, as events: whether a
viewer sees a change depends on the memory as it is now. A purged memory is unknown; the log keeps its kind and scope
unless it was private.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from sqlite3 import Connection
from typing import Any

from pipeline.kernel.enums import EdgeKind, Source
from pipeline.kernel.records import Kind, Memory, Scope, ScopeKind, Viewer
from pipeline.kernel.store import memories, meta
from pipeline.kernel.store.rows import Table, find_row, list_rows
from pipeline.kernel.store.visibility import may_be_derived_from, reach_condition, reaches
from pipeline.kernel.times import utc_text

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


def has_erased(db: Connection, after: int) -> bool:
    """Return whether a memory was purged after a change number."""
    return db.execute("SELECT 1 FROM change WHERE seq > ? AND op = ? LIMIT 1", (after, PURGE)).fetchone() is not None


def after(db: Connection, number: int, limit: int) -> list[LoggedChange]:
    """List the changes after a change number, the first first, without decay."""
    return list_rows(
        db,
        LoggedChange,
        "SELECT seq, op, memory_id FROM change WHERE seq > ? AND op <> ? ORDER BY seq LIMIT ?",
        (number, FADE, limit),
    )


def count_imported(db: Connection, since: datetime, until: datetime) -> dict[str, int]:
    """Count the imported memories of the changes in a time by operation, without candidates."""
    return dict(
        db.execute(
            f"SELECT op, count(DISTINCT memory_id) FROM change WHERE {_SINCE} AND hlc < ? "  # noqa: S608 - constant text
            f"AND memory_id IN (SELECT id FROM memory WHERE {_IMPORTED} AND candidate = 0) GROUP BY op",
            (_stamp(since), _stamp(until)),
        ).fetchall()
    )


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
    return datetime.fromtimestamp(_parse_stamp(hlc) / 1000, UTC)


def first_at(db: Connection) -> datetime | None:
    """Return the time of the first change (UTC), None without changes."""
    row = db.execute("SELECT hlc FROM change ORDER BY seq LIMIT 1").fetchone()
    return None if row is None else _parse_hlc_time(row[0])


def last_stamp(db: Connection) -> str | None:
    """Return the stamp of the last change, None without changes."""
    return find_row(db, str, "SELECT hlc FROM change ORDER BY seq DESC LIMIT 1")


def generation(db: Connection) -> int:
    """Return the number of the last change; it grows with every mutation."""
    return find_row(db, int, "SELECT seq FROM change ORDER BY seq DESC LIMIT 1") or 0


def last_written(db: Connection) -> int:
    """Return the number of the last change other than decay."""
    return find_row(db, int, "SELECT seq FROM change WHERE op <> ? ORDER BY seq DESC LIMIT 1", (FADE,)) or 0


@dataclass(frozen=True, slots=True)
class VisibleChange:
    """A change that a viewer may see; `memory` is None once it is purged. `stamp_ms` is its time."""

    number: int
    stamp_ms: int
    op: str
    memory_id: str
    kind: Kind
    memory: Memory | None

    @property
    def at(self) -> str:
        """Return the time of the change."""
        return utc_text(datetime.fromtimestamp(self.stamp_ms / 1000, UTC))


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A finished run of a job; `number` counts the runs in the order of their ends."""

    number: int
    name: str
    ok: bool
    at: str


@dataclass(frozen=True, slots=True)
class LogPage:
    """Visible changes, and the number and the time of the last change that was looked at."""

    changes: tuple[VisibleChange, ...]
    number: int
    stamp_ms: int


def describe_purged(db: Connection, memory: Memory) -> str | None:
    """Return what the log keeps of a memory that is being purged: nothing if it is private or incognito."""
    condition = f"SELECT 1 FROM memory WHERE seq = ? AND {may_be_derived_from()}"  # noqa: S608 - constant text
    if db.execute(condition, (memory.seq,)).fetchone() is None:
        return None
    return json.dumps({"kind": memory.kind, "scope": memory.scope.kind, "id": memory.scope.id})


def read_stamp(db: Connection, number: int) -> int | None:
    """Return the time of a change (ms since the epoch), None if the log does not have it."""
    row = db.execute("SELECT hlc FROM change WHERE seq = ?", (number,)).fetchone()
    return None if row is None else _parse_stamp(row[0])


def list_visible(db: Connection, viewer: Viewer, after: int, limit: int) -> LogPage:
    """Look at up to `limit` changes after a change number, and return those that the viewer may see."""
    rows = db.execute(
        "SELECT seq, hlc, op, memory_id, about FROM change WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)
    ).fetchall()
    rows = [(number, _parse_stamp(hlc), *rest) for number, hlc, *rest in rows]
    ids = {memory_id for _, _, op, memory_id, _ in rows if op not in (FADE, RELATE)}
    visible = _find_visible(db, viewer, sorted(ids))
    listed = tuple(filter(None, (_read_change(row, visible, viewer) for row in rows)))
    number, stamp_ms = rows[-1][:2] if rows else (after, 0)
    return LogPage(listed, number, stamp_ms)


def list_finished_runs(db: Connection, after: int, limit: int) -> list[FinishedRun]:
    """List the runs that ended after another run, in order."""
    return list_rows(
        db,
        FinishedRun,
        "SELECT end_number, name, ok, ended_at FROM job_run WHERE end_number > ? ORDER BY end_number LIMIT ?",
        (after, limit),
    )


def find_last_run(db: Connection) -> int:
    """Return the number of the last finished run."""
    return int(db.execute("SELECT coalesce(max(end_number), 0) FROM job_run").fetchone()[0])


def count_runs(db: Connection, after: int) -> int:
    """Count the recorded runs that ended after another run."""
    return int(db.execute("SELECT count(*) FROM job_run WHERE end_number > ?", (after,)).fetchone()[0])


def _find_visible(db: Connection, viewer: Viewer, ids: Sequence[str]) -> dict[str, Memory]:
    reach, values = reach_condition(viewer)
    chosen = f"id IN (SELECT value FROM json_each(?)) AND {reach} AND {may_be_derived_from()}"  # noqa: S608
    return {memory.id: memory for memory in memories.select(db, chosen, (json.dumps(ids), *values))}


def _read_change(row: Sequence[Any], visible: dict[str, Memory], viewer: Viewer) -> VisibleChange | None:
    number, stamp_ms, op, memory_id, about = row
    if op in (FADE, RELATE):
        return None
    if op != PURGE:
        memory = visible.get(memory_id)
        return None if memory is None else VisibleChange(number, stamp_ms, op, memory_id, memory.kind, memory)
    known = json.loads(about) if about is not None else None
    if known is None or not reaches(Scope(ScopeKind(known["scope"]), known["id"]), viewer):
        return None
    return VisibleChange(number, stamp_ms, op, memory_id, Kind(known["kind"]), None)


def _parse_stamp(hlc: str) -> int:
    return int(hlc.partition("-")[0])


TABLES = (Table("change"),)
