"""What workers do to a workspace: its jobs and running them; turns of digestion; snapshots."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from config.process import is_alive
from config.settings import Settings
from pipeline.digest.stage_loop import DigestPolicy, StageRunner, digest
from pipeline.errors import NotFound
from pipeline.feedback.writer import USAGE_JOB, FeedbackWriter
from pipeline.jobs import runner
from pipeline.jobs.context import JobContext
from pipeline.jobs.registry import (
    BY_NAME,
    JobStatus,
    job_statuses,
    list_due_jobs,
    list_requested_jobs,
    list_scheduled_jobs,
)
from pipeline.jobs.runner import Progress, RunResult, release_dead
from pipeline.records import Stage
from pipeline.store import runs, work
from pipeline.store.database import Database
from pipeline.store.operations import Operations
from pipeline.times import utc_now
from pipeline.workspace import Workspace

# A job's turn; one that steps back for written memories comes again after a while.
TURN_S = 60.0
PAUSE_S = 5.0
# A worker turns to other workspaces after this long; what is left to digest is asked for again.
DIGEST_TURN_S = 2.0
# A job that failed is tried again, later each time, before its next time comes.
MOST_TRIES = 3
BACKOFF_S = 30.0
# These jobs keep recall complete and fast, so they do not wait for other work.
URGENT = frozenset({"sweep", "segment", "vectors"})
# What a person or an agent waits for.
FOREGROUND = frozenset({Stage.EMBED, Stage.ENTITIES, Stage.PURGE})


@dataclass(frozen=True, slots=True)
class NextTurn:
    """When a job is to be taken up again, and the how manieth try that is."""

    in_s: float
    tries: int


def list_jobs(workspace: Workspace, settings: Settings, now: datetime) -> list[JobStatus]:
    """List the jobs of a workspace with their states, in the order of a full run."""
    with workspace.database.read() as db:
        return job_statuses(db, list_scheduled_jobs(settings), now)


def request_job(workspace: Workspace, feedback: FeedbackWriter, name: str) -> str:
    """Ask for a run of a job; return its id. Raises NotFound for a job or workspace that there is none of."""
    if name not in BY_NAME:
        raise NotFound(f"no such job; there are {', '.join(BY_NAME)}")
    database = workspace.database
    if name == USAGE_JOB:
        # What it writes is in the memory of the web server.
        return feedback.write_usage(workspace)
    with database.write() as db:
        return runs.request(db, name, utc_now())


def run_job(
    context: JobContext,
    name: str,
    owner: str,
    pausing: Callable[[], bool],
    on_progress: Progress = runner.show_no_progress,
) -> RunResult | None:
    """Run a job once, here and now; return None when another process runs it."""
    release_dead(context.database, is_alive)
    return runner.run_job(
        name,
        lambda run: BY_NAME[name].function(run, context),
        context.database,
        owner,
        pausing=pausing,
        on_error=partial(context.log_problem, f"job.{name}"),
        on_progress=on_progress,
    )


def take_job_turn(
    context: JobContext, name: str, owner: str, *, tries: int = 1, again: bool = False
) -> NextTurn | None:
    """Run a job for a turn if it is due; one that goes on or is tried again (`again`) is run in any case.

    Return when to take it up again, None when it is done with.
    """
    # Ticks and turns request a job until a worker starts it: later messages must find it done, not repeat it.
    if not again and not is_job_due(context, name):
        return None
    end = time.monotonic() + TURN_S
    result = run_job(
        context,
        name,
        owner,
        lambda: time.monotonic() >= end or (name not in URGENT and _foreground_waits(context.database)),
    )
    if result is None:
        return None
    if result.report.more:
        return NextTurn(PAUSE_S, tries=1)
    if result.error is not None and tries < MOST_TRIES:
        return NextTurn(BACKOFF_S * 2 ** (tries - 1), tries + 1)
    return None


def is_job_due(context: JobContext, name: str) -> bool:
    """Return whether a job was asked for, was interrupted, has its time, or is needed by the state of the indexes."""
    own = [job for job in list_scheduled_jobs(context.settings) if job.name == name]
    with context.database.read() as db:
        if list_due_jobs(db, own, datetime.now(UTC)):
            return True
    return context.is_needed(name)


def reap_processes(context: JobContext, operations: Operations) -> list[str]:
    """Release what dead processes claimed, wake workers for claimable work, and return the requested jobs."""
    for worker in operations.workers():
        if not is_alive(worker.owner):
            operations.forget_worker(worker.owner)
    context.reap()
    with context.database.read() as db:
        return list_requested_jobs(db)


def repair_indexes(context: JobContext) -> list[str]:
    """Queue again what the vector index lost; return the jobs that the state of the indexes asks for."""
    context.repair_vectors()
    return context.list_needed_jobs()


def list_overdue_indexes(context: JobContext) -> list[str]:
    """Return the job that a large lexical tail asks for, which loads no model."""
    return ["segment"] if context.is_needed("segment") else []


def _foreground_waits(database: Database) -> bool:
    with database.read() as db:
        return not FOREGROUND.isdisjoint(work.list_due_stages(db, time.time()))


@dataclass(frozen=True, slots=True)
class DigestTurn:
    """What follows a turn: whether the stage goes on at once, or when it may, and which jobs are needed."""

    more: bool = False
    retry_in_s: float | None = None
    jobs: tuple[str, ...] = ()


def digest_stage(
    context: JobContext,
    stage: Stage,
    runner: StageRunner,
    owner: str,
    policy: DigestPolicy,
    share: Callable[[], None],
) -> DigestTurn:
    """Work off one stage of a workspace for a turn; what goes wrong with a memory is logged and tried again.

    With a backlog, `share` is called so that another worker takes a turn at the same time.
    """
    log = partial(context.log_problem, f"digest.{stage}")
    end = time.monotonic() + DIGEST_TURN_S
    report = digest(context.database, stage, runner, owner, policy, log, end, share)
    if report.more:
        return DigestTurn(more=not report.shared)
    # Only the encoder knows how vectors are stored, and a purge never waits for an encoder.
    list_needed = partial(list_overdue_indexes, context) if stage is Stage.PURGE else context.list_needed_jobs
    return DigestTurn(retry_in_s=report.retry_in_s, jobs=tuple(list_needed()) if report.claimed else ())
