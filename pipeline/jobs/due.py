"""Which jobs are due in a workspace now."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from sqlite3 import Connection

from pipeline.jobs.calendar import Appointment, is_due, next_run
from pipeline.store import changes, meta, runs
from pipeline.store.runs import Run
from pipeline.times import parse


class Standing(StrEnum):
    """How a job stands."""

    NEVER = "never ran"
    DONE = "done"
    FAILED = "failed"
    ASKED = "asked for"
    RUNNING = "running"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Outlook:
    """A job, its last run that began, how it stands, and when it is due next (UTC)."""

    appointment: Appointment
    last: Run | None
    standing: Standing
    next_at: datetime


def outlooks(db: Connection, appointments: Iterable[Appointment], now: datetime) -> list[Outlook]:
    """Tell how each job stands."""
    asked, held = asked_jobs(db), runs.held_locks(db, now.timestamp())
    found = []
    for appointment in appointments:
        last = runs.last(db, appointment.name)
        standing = _standing(last, is_asked=appointment.name in asked, is_held=appointment.name in held)
        due = next_run(appointment, begun(db, last), now)
        found.append(Outlook(appointment, last, standing, max(due, now)))
    return found


def _standing(last: Run | None, *, is_asked: bool, is_held: bool) -> Standing:
    if last is not None and last.ended_at is None and is_held:
        return Standing.RUNNING
    if is_asked:
        return Standing.ASKED
    if last is None:
        return Standing.NEVER
    if last.ended_at is None:
        return Standing.INTERRUPTED
    return Standing.DONE if last.ok else Standing.FAILED


def asked_jobs(db: Connection) -> list[str]:
    """List the jobs that somebody asked for and that have not begun; who finds a segment broken asks for a new one."""
    asked = runs.asked(db)
    wanted = meta.get(db, meta.SEGMENT_WANTED) is not None and "segment" not in asked
    return [*asked, "segment"] if wanted else asked


def due_jobs(db: Connection, appointments: Iterable[Appointment], now: datetime) -> list[str]:
    """List the jobs that were asked for, were interrupted, or whose time has come and that would find anything new."""
    asked = asked_jobs(db)
    generation = changes.written(db)
    return [a.name for a in appointments if a.name in asked or _comes(db, a, runs.last(db, a.name), generation, now)]


def begun(db: Connection, last: Run | None) -> datetime | None:
    """Return when a job began last; for one that never ran, when the workspace did."""
    if last is not None and last.started_at is not None:
        return parse(last.started_at)
    return changes.first_at(db)


def _comes(db: Connection, appointment: Appointment, last: Run | None, generation: int, now: datetime) -> bool:
    if last is not None and last.ended_at is None:
        return True
    if last is not None and last.ok and not appointment.idle and generation <= last.generation:
        return False
    since = begun(db, last) if last is not None or appointment.every is None else None
    return is_due(appointment, since, now)
