"""The registry of jobs: name, schedule and function of each job, in the order of a complete run.

It also returns the status of a workspace's jobs, and the jobs that are due.

A job's dependencies are loaded when it runs, so that listing jobs loads none of them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from importlib import import_module
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfoNotFoundError

from config.settings import Settings
from pipeline.jobs.runner import JobRun, Report
from pipeline.records.access import decide_access
from pipeline.store import changes, meta, runs
from pipeline.times import parse

if TYPE_CHECKING:
    from apscheduler.triggers.base import BaseTrigger

    from pipeline.jobs.context import JobContext

NIGHTLY_HOUR = 3
# Times have a resolution of milliseconds. A run that started at its trigger's second is not due again by that trigger.
_RESOLUTION = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

JobFunction = Callable[..., Report]

SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
# The job has work to do even if nothing was written.
ALWAYS = timedelta(0)


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a job runs: at a fixed interval, or, without `every`, nightly in local time."""

    every: timedelta | None = None

    def trigger(self) -> "BaseTrigger":
        """Return the trigger, which handles time zones and daylight saving."""
        from apscheduler.triggers.cron import CronTrigger
        from apscheduler.triggers.interval import IntervalTrigger

        if self.every is not None:
            # A fixed start gives every process the same times.
            return IntervalTrigger(seconds=int(self.every.total_seconds()), start_date=_EPOCH, timezone=UTC)
        try:
            return CronTrigger(hour=NIGHTLY_HOUR)
        except ZoneInfoNotFoundError:
            # TZ may contain a rule instead of a zone name; each question creates a new trigger.
            return CronTrigger(hour=NIGHTLY_HOUR, timezone=datetime.now().astimezone().tzinfo)

    def next_after(self, moment: datetime) -> datetime:
        """Return the first trigger time after a time (UTC)."""
        following: datetime = self.trigger().get_next_fire_time(None, moment + _RESOLUTION)
        return following.astimezone(UTC)

    def last_before(self, moment: datetime) -> datetime:
        """Return the last trigger time up to a time (UTC)."""
        # A day on which clocks change has 25 hours at most.
        last = self.next_after(moment - 2 * (self.every or timedelta(hours=25)))
        while (following := self.next_after(last)) <= moment:
            last = following
        return last

    def __str__(self) -> str:
        if self.every is None:
            return f"nightly at {NIGHTLY_HOUR:02}:00"
        seconds = int(self.every.total_seconds())
        for unit, length in (("h", 3600), ("min", 60)):
            if seconds % length == 0:
                return f"every {seconds // length} {unit}"
        return f"every {seconds} s"


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """A job: name, one-line summary, schedule, and function.

    `idle` is the time after which the job has work to do although nothing was written since its last run; None for
    never. A job with `elsewhere` is done by the web server or at every tick of the scheduler, and is not sent to the
    workers.
    """

    name: str
    summary: str
    schedule: Schedule
    function: JobFunction
    idle: timedelta | None = None
    elsewhere: bool = False


NIGHTLY = Schedule()


def _snapshot(run: JobRun, context: "JobContext") -> Report:
    from pipeline.jobs.snapshot import snapshot

    if context.snapshots is not None:
        taken = context.snapshots.take(run.database, run.now, anew=False)
        return Report({"taken": int(taken is not None), "unchanged": int(taken is None)})
    report = snapshot(run, context.paths.snapshots)
    if report.more or run.database.file is None:
        return report
    from pipeline.jobs.people_snapshot import snapshot_people

    # The users belong to the data directory: the first workspace of the night copies them.
    return snapshot_people(run, context.settings.paths, report)


def _vectors(_run: JobRun, context: "JobContext") -> Report:
    # The repair deletes an unreadable table; then there is nothing to compact.
    queued = context.repair_vectors()
    compacted = context.compact_vectors()
    return Report({"compacted": int(compacted), "queued": queued, "turns": context.repair_turn_vectors()})


def _predict(run: JobRun, context: "JobContext") -> Report:
    from pipeline.jobs.mining.predict import answer_questions, predict

    report = predict(run)
    if report.more or context.open_search is None:
        return report
    return replace(report, more=answer_questions(run, context.open_search))


def _load(
    module: str,
    name: str,
    choose: Callable[["JobContext"], tuple[Any, ...]] = lambda _context: (),
    *,
    writes: bool = False,
) -> JobFunction:
    """Return a job that is loaded when it runs; `choose` returns its arguments after the run.

    A job that `writes` memories does nothing in a workspace that is incognito or read-only.
    """

    def run_job(run: JobRun, context: "JobContext") -> Report:
        if writes and decide_access(context.paths.root.name, context.settings).is_silent:
            return Report()
        function: JobFunction = getattr(import_module(f"pipeline.jobs.{module}"), name)
        return function(run, *choose(context))

    return run_job


JOBS: tuple[ScheduledJob, ...] = (
    ScheduledJob("snapshot", "keeps a verified copy of the store: 7 daily, 4 weekly", NIGHTLY, _snapshot),
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
        "dedup",
        "merges or clears possible duplicates",
        Schedule(10 * MINUTE),
        _load("mining.dedup", "dedup", lambda context: (context.ask_model("dedup"),)),
    ),
    ScheduledJob(
        "edges",
        "finds causes, contradictions and supersessions between recent memories",
        Schedule(10 * MINUTE),
        _load("mining.edges", "edges", lambda context: (context.vectors,)),
    ),
    ScheduledJob(
        "arcs",
        "groups memories into threads",
        Schedule(HOUR),
        _load("mining.arcs", "arcs", lambda context: (context.vectors,)),
    ),
    ScheduledJob("predict", "predicts the next questions and answers them", Schedule(HOUR), _predict, idle=DAY),
    ScheduledJob(
        "bridges",
        "finds names that memories define or users merged",
        Schedule(HOUR),
        _load("mining.bridges", "mine_bridges"),
    ),
    ScheduledJob("check", "compares what memories cite with the repository", Schedule(HOUR), _load("check", "check")),
    ScheduledJob(
        "decay",
        "lowers the importance of unused memories, raises it with use",
        NIGHTLY,
        _load("aging", "decay"),
        idle=ALWAYS,
    ),
    ScheduledJob(
        "archive",
        "archives old memories that are unused and unimportant",
        NIGHTLY,
        _load("aging", "archive"),
        idle=ALWAYS,
    ),
    ScheduledJob(
        "consolidate",
        "summarizes related episodes in one memory",
        NIGHTLY,
        _load("mining.consolidate", "consolidate", lambda context: (context.table, context.model()), writes=True),
    ),
    ScheduledJob(
        "lessons",
        "proposes lessons from repeated corrections and from failures and their fixes",
        NIGHTLY,
        _load("mining.lessons", "lessons", lambda context: (context.model(),), writes=True),
    ),
    ScheduledJob(
        "reflect",
        "links decisions to their causes and outcomes in a session",
        NIGHTLY,
        _load("mining.reflect", "reflect", lambda context: (context.model(),), writes=True),
    ),
    ScheduledJob(
        "sessions",
        "deletes the oldest text of sessions above the storage budget",
        NIGHTLY,
        _load("sessions", "sessions", lambda context: (context.settings.sessions_mb,)),
        idle=ALWAYS,
    ),
    ScheduledJob("layout", "computes the map of entities", NIGHTLY, _load("map.layout", "layout")),
    ScheduledJob(
        "health",
        "checks store and indexes, repairs derived data",
        Schedule(HOUR),
        _load(
            "health",
            "health",
            lambda context: (context.paths, context.repair_vectors, context.on_problem, context.segments),
        ),
        idle=DAY,
    ),
    ScheduledJob(
        "checkpoint",
        "moves the write-ahead log into the store's file",
        Schedule(10 * MINUTE),
        lambda run, _context: Report({"complete": int(run.database.complete_file())}),
    ),
)

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
