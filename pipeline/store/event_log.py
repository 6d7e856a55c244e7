"""The part of the change log, and the finished runs of jobs, that a viewer may see as events.

Whether a viewer sees a change depends on the memory as it is now. A purged memory is unknown; the log keeps its kind
and scope unless it was private.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from sqlite3 import Connection
from typing import Any

from pipeline.records import Kind, Memory, Scope, ScopeKind, Viewer
from pipeline.store import changes, memories
from pipeline.store.visibility import may_be_derived_from, reach_condition, reaches
from pipeline.times import utc_text


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
    ids = {memory_id for _, _, op, memory_id, _ in rows if op not in (changes.FADE, changes.RELATE)}
    visible = _find_visible(db, viewer, sorted(ids))
    listed = tuple(filter(None, (_read_change(row, visible, viewer) for row in rows)))
    number, stamp_ms = rows[-1][:2] if rows else (after, 0)
    return LogPage(listed, number, stamp_ms)


def list_finished_runs(db: Connection, after: int, limit: int) -> list[FinishedRun]:
    """List the runs that ended after another run, in order."""
    rows = db.execute(
        "SELECT end_number, name, ok, ended_at FROM job_run WHERE end_number > ? ORDER BY end_number LIMIT ?",
        (after, limit),
    )
    return [FinishedRun(number, name, bool(ok), at) for number, name, ok, at in rows]


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
    if op in (changes.FADE, changes.RELATE):
        return None
    if op != changes.PURGE:
        memory = visible.get(memory_id)
        return None if memory is None else VisibleChange(number, stamp_ms, op, memory_id, memory.kind, memory)
    known = json.loads(about) if about is not None else None
    if known is None or not reaches(Scope(ScopeKind(known["scope"]), known["id"]), viewer):
        return None
    return VisibleChange(number, stamp_ms, op, memory_id, Kind(known["kind"]), None)


def _parse_stamp(hlc: str) -> int:
    return int(hlc.partition("-")[0])
