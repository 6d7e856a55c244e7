"""Which jobs are due in a workspace now."""

from collections.abc import Iterable
from datetime import datetime
from sqlite3 import Connection

from pipeline.sleep.calendar import Appointment, is_due
from pipeline.store import changes, runs
from pipeline.store.runs import Run
from pipeline.times import parse


def due_jobs(db: Connection, appointments: Iterable[Appointment], now: datetime) -> list[str]:
    """List the jobs that were asked for, were interrupted, or whose time has come and that would find anything new."""
    asked = set(runs.asked(db))
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
