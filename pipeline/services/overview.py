"""The overview of a workspace: its size and its health."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import lru_cache
from sqlite3 import Connection

from config.process import is_alive
from config.settings import Settings
from pipeline.errors import StorageUnreachable
from pipeline.jobs.registry import NIGHTLY, JobState, JobStatus, ScheduledJob, job_statuses, list_scheduled_jobs
from pipeline.services.snapshots import KeptSnapshots, takes_snapshots
from pipeline.store import changes, entities, journal, review, work
from pipeline.store.database import Database
from pipeline.store.journal import Known
from pipeline.store.operations import Operations
from pipeline.times import utc_text
from pipeline.workspace import Workspace

# Number of latest memories to search for one written by an agent, to see whether any agent is connected.
LOOKED_AT = 500


@dataclass(frozen=True, slots=True)
class NewestSnapshot:
    """The time of the newest snapshot, if any; `is_known` is false while storage is unavailable.

    `is_ever_taken` is false for a store on a server without object storage: it is backed up there.
    """

    at: str | None
    is_known: bool
    is_ever_taken: bool


@dataclass(frozen=True, slots=True)
class WorkspaceHealth:
    """State of the queue and the nightly jobs; `nightly` lists those that ran since they were last due."""

    pending: int
    dead: int
    oldest_at: str | None
    workers: int
    running: tuple[JobStatus, ...]
    failed: tuple[JobStatus, ...]
    nightly: tuple[JobStatus, ...]
    nightly_due_at: str
    errors: int
    snapshot: NewestSnapshot


@dataclass(frozen=True, slots=True)
class Overview:
    """The size of a workspace and its health.

    `decisions` is the number of pending decisions, `has_agents` whether any agent has used the workspace.
    """

    known: Known
    facts: int
    entities: int
    health: WorkspaceHealth
    decisions: int
    has_agents: bool


def read_overview(
    workspace: Workspace, operations: Operations, settings: Settings, snapshots: KeptSnapshots, now: datetime
) -> Overview:
    """Return the overview of a workspace at one time."""
    database = workspace.database
    # Query object storage before opening the store, so that no connection is kept open while waiting.
    snapshot = _find_newest_snapshot(workspace.id, settings, snapshots)
    with database.read() as db:
        return Overview(
            _count_known(database, changes.generation(db), journal.count_candidates(db)),
            journal.count_current_facts(db, utc_text(now)),
            entities.count(db),
            _check_health(workspace, db, operations, list_scheduled_jobs(settings), snapshot, now),
            review.count_waiting(db).decisions,
            journal.has_agent_writers(db, LOOKED_AT),
        )


def midnight_before(now: datetime) -> datetime:
    """Return the start of the local day of a time."""
    return datetime.combine(now.astimezone().date(), time.min).astimezone()


def nightly_before(now: datetime) -> datetime:
    """Return when the nightly jobs were last due before a time."""
    return NIGHTLY.last_before(now)


@lru_cache(maxsize=32)
def _count_known(
    database: Database,
    generation: int,  # noqa: ARG001 - part of the cache key: changes are counted again
    candidates: int,  # noqa: ARG001 - part of the cache key: a decision about a candidate is not a logged change
) -> Known:
    """Return the counts of contents; the caller's transaction has this generation."""
    with database.read() as db:
        return journal.count_known(db)


def _find_newest_snapshot(workspace_id: str, settings: Settings, snapshots: KeptSnapshots) -> NewestSnapshot:
    try:
        newest_first = snapshots.find(workspace_id)
    except StorageUnreachable:
        return NewestSnapshot(None, is_known=False, is_ever_taken=True)
    at = utc_text(newest_first[0].at) if newest_first else None
    return NewestSnapshot(at, is_known=True, is_ever_taken=takes_snapshots(settings))


def _check_health(
    workspace: Workspace,
    db: Connection,
    operations: Operations,
    scheduled: Sequence[ScheduledJob],
    snapshot: NewestSnapshot,
    now: datetime,
) -> WorkspaceHealth:
    began = utc_text(nightly_before(now))
    jobs = job_statuses(db, scheduled, now)
    ran = [job for job in jobs if job.job.schedule == NIGHTLY and job.last and (job.last.started_at or "") >= began]
    oldest = work.oldest_pending(db)
    return WorkspaceHealth(
        sum(work.count_pending(db).values()),
        sum(work.count_dead(db).values()),
        None if oldest is None else utc_text(datetime.fromtimestamp(oldest, UTC)),
        sum(is_alive(worker.owner) for worker in operations.workers()),
        tuple(job for job in jobs if job.state is JobState.RUNNING),
        tuple(job for job in jobs if job.state is JobState.FAILED),
        tuple(ran),
        began,
        operations.errors_since(workspace.id, midnight_before(now).timestamp()),
        snapshot,
    )
