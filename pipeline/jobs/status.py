"""How each job of a workspace stands, and which are due now."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from sqlite3 import Connection

from pipeline.jobs.registry import ScheduledJob
from pipeline.store import changes, meta, runs
from pipeline.store.runs import Run
from pipeline.times import parse


class JobState(StrEnum):
    """What became of a job's last run, or becomes of the one that was asked for."""

    NEVER = "never ran"
    DONE = "done"
    FAILED = "failed"
    ASKED = "asked for"
    RUNNING = "running"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A job, its last run that began, how it stands, and when it is due next (UTC)."""

    job: ScheduledJob
    last: Run | None
    state: JobState
    next_at: datetime


def job_statuses(db: Connection, jobs: Iterable[ScheduledJob], now: datetime) -> list[JobStatus]:
    """Tell how each job stands."""
    asked, held = asked_jobs(db), runs.held_locks(db, now.timestamp())
    found = []
    for job in jobs:
        last = runs.last(db, job.name)
        state = _state(last, is_asked=job.name in asked, is_held=job.name in held)
        found.append(JobStatus(job, last, state, max(_next_at(db, job, last, now), now)))
    return found


def _state(last: Run | None, *, is_asked: bool, is_held: bool) -> JobState:
    if last is not None and last.ended_at is None and is_held:
        return JobState.RUNNING
    if is_asked:
        return JobState.ASKED
    if last is None:
        return JobState.NEVER
    if last.ended_at is None:
        return JobState.INTERRUPTED
    return JobState.DONE if last.ok else JobState.FAILED


def asked_jobs(db: Connection) -> list[str]:
    """List the jobs that somebody asked for and that have not begun; who finds a segment broken asks for a new one."""
    asked = runs.list_requested(db)
    wanted = meta.get(db, meta.SEGMENT_WANTED) is not None and "segment" not in asked
    return [*asked, "segment"] if wanted else asked


def due_jobs(db: Connection, jobs: Iterable[ScheduledJob], now: datetime) -> list[str]:
    """List the jobs that were asked for, were interrupted, or whose time has come and that would find anything new."""
    asked = asked_jobs(db)
    generation = changes.last_written(db)
    return [job.name for job in jobs if job.name in asked or _is_due(db, job, generation, now)]


def unfinished_jobs(db: Connection, names: Iterable[str]) -> list[str]:
    """List those of some jobs that were asked for or interrupted."""
    asked = asked_jobs(db)
    return [name for name in names if name in asked or _is_open(runs.last(db, name))]


def _is_open(last: Run | None) -> bool:
    return last is not None and last.ended_at is None


def _is_due(db: Connection, job: ScheduledJob, generation: int, now: datetime) -> bool:
    last = runs.last(db, job.name)
    if _is_open(last):
        return True
    if last is not None and last.ok and not job.idle and generation <= last.generation:
        return False
    return _next_at(db, job, last, now) <= now


def _next_at(db: Connection, job: ScheduledJob, last: Run | None, now: datetime) -> datetime:
    """Return when a job is due next: now or earlier when a run was missed; many missed runs are made up for once."""
    if last is not None and last.started_at is not None:
        return job.schedule.next_after(parse(last.started_at))
    if job.schedule.every is not None:
        return now
    # A workspace in which no nightly job ran yet gets its first.
    return job.schedule.next_after(changes.first_at(db) or now)
