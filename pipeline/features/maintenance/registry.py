"""The registry of jobs: the jobs of the frame and of all features, in the order of a complete run.

It also returns the status of a workspace's jobs, and the jobs that are due.

A job's dependencies are loaded when it runs, so that listing jobs loads none of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from sqlite3 import Connection
from typing import TYPE_CHECKING

from config.settings import Settings
from pipeline.kernel.feature import ALWAYS, DAY, MINUTE, NIGHTLY, SECOND, Schedule, ScheduledJob, load_job
from pipeline.kernel.job_runs import JobRun, Report
from pipeline.kernel.registry import arrange, features
from pipeline.kernel.store import changes, meta, runs
from pipeline.kernel.times import parse

if TYPE_CHECKING:
    from pipeline.features.maintenance.context import JobContext


def _vectors(_run: JobRun, context: "JobContext") -> Report:
    # The repair deletes an unreadable table; then there is nothing to compact.
    queued = context.repair_vectors()
    compacted = context.compact_vectors()
    return Report({"compacted": int(compacted), "queued": queued, "turns": context.repair_turn_vectors()})


_OWN_JOBS = (
    ScheduledJob(
        "sweep",
        "wakes workers for work whose message was lost, frees expired leases",
        Schedule(30 * SECOND),
        lambda _run, context: Report({"woken": len(context.reap())}),
        elsewhere=True,
    ),
    # The web server keeps access counts in memory and writes them itself.
    ScheduledJob(
        "touches",
        "writes buffered access counts",
        Schedule(5 * SECOND),
        lambda _run, _context: Report(),
        elsewhere=True,
    ),
    ScheduledJob(
        "segment",
        "adds new writes to the lexical segment",
        Schedule(5 * MINUTE),
        lambda _run, context: Report({"memories": context.rebuild_segment(), "turns": context.rebuild_turn_segment()}),
    ),
    ScheduledJob(
        "vectors",
        "compacts the vector index and queues missing vectors",
        Schedule(15 * MINUTE),
        _vectors,
        idle=DAY,
    ),
    ScheduledJob(
        "sessions",
        "deletes the oldest text of sessions above the storage budget",
        NIGHTLY,
        load_job("pipeline.sessions.job", "sessions", lambda context: (context.settings.sessions_mb,)),
        idle=ALWAYS,
    ),
    ScheduledJob(
        "checkpoint",
        "moves the write-ahead log into the store's file",
        Schedule(10 * MINUTE),
        lambda run, _context: Report({"complete": int(run.database.complete_file())}),
    ),
)
JOBS: tuple[ScheduledJob, ...] = tuple(arrange(_OWN_JOBS, (job for feature in features() for job in feature.jobs)))

BY_NAME: Mapping[str, ScheduledJob] = {job.name: job for job in JOBS}


def list_scheduled_jobs(settings: Settings) -> list[ScheduledJob]:
    """Return the jobs with the intervals of the settings."""
    seconds = {
        "sweep": settings.sweep_interval_s,
        "segment": settings.segment_interval_s,
    }
    return [replace(job, schedule=Schedule(seconds[job.name] * SECOND)) if job.name in seconds else job for job in JOBS]


# Status of the jobs, and due jobs


class JobState(StrEnum):
    """The result of a job's last run, or the state of the requested run."""

    NEVER = "never ran"
    DONE = "done"
    FAILED = "failed"
    ASKED = "asked for"
    RUNNING = "running"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A job, its last started run, its state, and when it is due next (UTC)."""

    job: ScheduledJob
    last: runs.Run | None
    state: JobState
    next_at: datetime


def job_statuses(db: Connection, jobs: Iterable[ScheduledJob], now: datetime) -> list[JobStatus]:
    """Return the status of each job."""
    asked, held = list_requested_jobs(db), runs.list_held_locks(db, now.timestamp())
    statuses = []
    for job in jobs:
        last = runs.last(db, job.name)
        state = _state(last, is_asked=job.name in asked, is_held=job.name in held)
        statuses.append(JobStatus(job, last, state, max(_next_at(db, job, last, now), now)))
    return statuses


def _state(last: runs.Run | None, *, is_asked: bool, is_held: bool) -> JobState:
    if last is not None and last.ended_at is None and is_held:
        return JobState.RUNNING
    if is_asked:
        return JobState.ASKED
    if last is None:
        return JobState.NEVER
    if last.ended_at is None:
        return JobState.INTERRUPTED
    return JobState.DONE if last.ok else JobState.FAILED


def list_requested_jobs(db: Connection) -> list[str]:
    """List requested jobs that have not started, including a segment that a reader found broken."""
    asked = runs.list_requested(db)
    wanted = (meta.get(db, key) for key in (meta.SEGMENT_WANTED, meta.TURN_SEGMENT_WANTED))
    needs_segment = any(request is not None for request in wanted) and "segment" not in asked
    return [*asked, "segment"] if needs_segment else asked


def list_due_jobs(db: Connection, jobs: Iterable[ScheduledJob], now: datetime) -> list[str]:
    """List jobs that were requested, were interrupted, or are due and have work to do."""
    asked, moments = list_requested_jobs(db), due_times(db, jobs, now)
    return [name for name, moment in moments.items() if name in asked or (moment is not None and moment <= now)]


def due_times(db: Connection, jobs: Iterable[ScheduledJob], now: datetime) -> dict[str, datetime | None]:
    """Return the time from which each job is due if nothing is written from now on; None for never."""
    generation = changes.last_written(db)
    return {job.name: _due_from(db, job, generation, now) for job in jobs}


def list_unfinished_jobs(db: Connection, names: Iterable[str]) -> list[str]:
    """List the given jobs that were requested or interrupted."""
    asked = list_requested_jobs(db)
    return [name for name in names if name in asked or _is_open(runs.last(db, name))]


def _is_open(last: runs.Run | None) -> bool:
    return last is not None and last.ended_at is None


def _due_from(db: Connection, job: ScheduledJob, generation: int, now: datetime) -> datetime | None:
    last = runs.last(db, job.name)
    if _is_open(last):
        return now
    if last is not None and last.ok and last.started_at is not None and generation <= last.generation:
        if job.idle is None:
            return None
        return max(_next_at(db, job, last, now), parse(last.started_at) + job.idle)
    if last is None and job.schedule.every is None and changes.first_at(db) is None:
        # Its first night comes after the first write.
        return None
    return _next_at(db, job, last, now)


def _next_at(db: Connection, job: ScheduledJob, last: runs.Run | None, now: datetime) -> datetime:
    """Return when a job is due next: now or earlier if a run was missed. Several missed runs are made up for by one."""
    if last is not None and last.started_at is not None:
        return job.schedule.next_after(parse(last.started_at))
    if job.schedule.every is not None:
        return now
    # A workspace without any nightly run gets its first.
    return job.schedule.next_after(changes.first_at(db) or now)
