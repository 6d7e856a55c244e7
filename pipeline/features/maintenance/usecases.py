"""Run the jobs and the digestion of a workspace in turns."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from config.process import is_alive
from config.settings import Settings
from pipeline.features.maintenance.context import JobContext
from pipeline.features.maintenance.registry import (
    BY_NAME,
    JobStatus,
    job_statuses,
    list_due_jobs,
    list_requested_jobs,
    list_scheduled_jobs,
)
from pipeline.kernel import job_runs as runner
from pipeline.kernel.errors import NotFound
from pipeline.kernel.records import Stage
from pipeline.kernel.stage_loop import DigestPolicy, StageRegistry, StageRunner, digest
from pipeline.kernel.store import runs, work
from pipeline.kernel.store.checkpoints import complete_files
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.operations import Operations
from pipeline.kernel.times import parse, utc_now
from pipeline.kernel.workspace import Workspace
from pipeline.recall.feedback import USAGE_JOB, FeedbackWriter


def complete_store_files(settings: Settings) -> Iterator[str]:
    """Move every write-ahead log into its store's main file, so that a copy of this file is complete.

    Yield a message for each file that is not complete afterwards. Call it after the processes have stopped.
    """
    for file, problem in complete_files(settings.paths):
        yield f"{file} is complete only together with {file.name}-wal: {problem}"


# Time limit of a job's turn, and the pause before the next turn of a job that gave way to new memories.
TURN_S = 60.0
PAUSE_S = 5.0
# The least time between two runs that answer likely questions: each takes seconds of CPU, and recall works without.
PREDICT_PAUSE = timedelta(minutes=10)
# Time limit of a digestion turn, so that other workspaces get theirs; the rest is queued again.
DIGEST_TURN_S = 2.0
# A failed job is retried with increasing delays before its next scheduled time.
MOST_TRIES = 3
BACKOFF_S = 30.0
# These jobs keep recall complete and fast, so they do not wait for other work.
URGENT = frozenset({"sweep", "segment", "vectors"})
# Stages that a person or an agent waits for, and the comparison, which needs the same vectors and cores.
FOREGROUND = frozenset({Stage.EMBED, Stage.ENTITIES, Stage.DEDUP, Stage.PURGE})


@dataclass(frozen=True, slots=True)
class NextTurn:
    """The delay before a job starts, continues or is retried, and the number of that try.

    With `again`, the job takes its turn in any case.
    """

    in_s: float
    tries: int
    again: bool = True


def list_jobs(workspace: Workspace, settings: Settings, now: datetime) -> list[JobStatus]:
    """List the jobs of a workspace with their states, in the order of a full run."""
    with workspace.database.read() as db:
        return job_statuses(db, list_scheduled_jobs(settings), now)


def request_job(workspace: Workspace, feedback: FeedbackWriter, name: str) -> str:
    """Request a run of a job; return its id. Raises NotFound for an unknown job or workspace."""
    if name not in BY_NAME:
        raise NotFound(f"no such job; there are {', '.join(BY_NAME)}")
    database = workspace.database
    if name == USAGE_JOB:
        # The usage to write is in the memory of the web server.
        return feedback.write_usage(workspace)
    with database.write() as db:
        return runs.request(db, name, utc_now())


def run_job(
    context: JobContext,
    name: str,
    owner: str,
    pausing: Callable[[], bool],
    on_progress: runner.Progress = runner.show_no_progress,
) -> runner.RunResult | None:
    """Run a job once in this process; return None if another process runs it."""
    runner.release_dead(context.database, is_alive)
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
    """Run a job for a turn if it is due, or in any case if it continues or is retried (`again`).

    Return when to continue, None if nothing is left to do.
    """
    # Ticks and turns request a job until a worker starts it: later messages must find it done, not repeat it.
    if not again and not is_job_due(context, name):
        return None
    if name not in URGENT and _is_digesting_backlog(context.database):
        return NextTurn(PAUSE_S, tries, again)
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
    """Return whether a job was requested, was interrupted, is scheduled, or is needed by the indexes."""
    own = [job for job in list_scheduled_jobs(context.settings) if job.name == name]
    with context.database.read() as db:
        if list_due_jobs(db, own, datetime.now(UTC)):
            return True
    return context.is_needed(name)


def reap_processes(context: JobContext, operations: Operations) -> list[str]:
    """Release the claims of dead processes, wake workers for claimable work, and return the requested jobs."""
    for worker in operations.workers():
        if not is_alive(worker.owner):
            operations.forget_worker(worker.owner)
    context.reap()
    with context.database.read() as db:
        return list_requested_jobs(db)


def repair_indexes(context: JobContext) -> list[str]:
    """Queue memories that are missing in the vector index; return the jobs that the indexes need."""
    context.repair_vectors()
    return context.list_needed_jobs()


def list_overdue_indexes(context: JobContext) -> list[str]:
    """Return the job for a large lexical tail, which loads no model."""
    return ["segment"] if context.is_needed("segment") else []


def list_outdated_answers(context: JobContext, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> list[str]:
    """Return the job that answers the likely questions if it is needed, has paused, and no memory is being digested."""
    with context.database.read() as db:
        last = runs.last(db, "predict")
    if last is not None and last.started_at is not None and now() - parse(last.started_at) < PREDICT_PAUSE:
        return []
    is_idle = not _foreground_waits(context.database)
    return ["predict"] if is_idle and context.is_needed("predict") else []


def _foreground_waits(database: Database) -> bool:
    with database.read() as db:
        return not FOREGROUND.isdisjoint(work.list_due_stages(db, time.time()))


def _is_digesting_backlog(database: Database) -> bool:
    # If no worker digests, for example because the encoder is broken, snapshots and repairs must not wait.
    with database.read() as db:
        due = work.list_due_stages(db, time.time())
        return not FOREGROUND.isdisjoint(due) and not FOREGROUND.isdisjoint(work.list_leased_stages(db, time.time()))


@dataclass(frozen=True, slots=True)
class DigestTurn:
    """Result of a turn: whether or when the stage continues, and which jobs are needed."""

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
    """Process one stage of a workspace for a turn; log and retry memories that fail.

    With a backlog, `share` is called so that another worker takes a turn at the same time.
    """
    log = partial(context.log_problem, f"digest.{stage}")
    end = time.monotonic() + DIGEST_TURN_S
    report = digest(context.database, stage, runner, owner, policy, log, end, share)
    if report.more:
        return DigestTurn(more=not report.shared)
    # Only the encoder knows how vectors are stored, and a purge never waits for an encoder.
    if not report.claimed:
        return DigestTurn(retry_in_s=report.retry_in_s)
    needed = list_overdue_indexes(context) if stage is Stage.PURGE else context.list_needed_jobs()
    return DigestTurn(retry_in_s=report.retry_in_s, jobs=(*needed, *list_outdated_answers(context)))


@dataclass(frozen=True, slots=True)
class Embedded:
    """The numbers of memories and turns that were embedded, and of those that failed."""

    memories: int = 0
    turns: int = 0
    failed: int = 0


def embed_pending(context: JobContext, stages: StageRegistry, owner: str, policy: DigestPolicy) -> Embedded:
    """Embed what is pending in a workspace; workers may embed at the same time."""
    problems: list[str] = []

    def log_failure(problem: str) -> None:
        problems.append(problem)
        context.log_problem("embed", problem)

    memories, turns = (
        digest(context.database, stage, stages[stage], owner, policy, log_failure, math.inf).claimed
        for stage in (Stage.EMBED, Stage.EMBED_TURNS)
    )
    return Embedded(memories, turns, len(problems))
