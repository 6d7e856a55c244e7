"""The state of Reverie: the queue and its workers, errors, the size of a workspace, the list of workspaces."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from sqlite3 import Connection

from config.process import is_alive
from config.settings import Settings
from pipeline.features.entities import store as entities
from pipeline.features.indexing.job import request_rebuild
from pipeline.features.maintenance.registry import JobState, JobStatus, job_statuses, list_scheduled_jobs
from pipeline.features.predictions import store as predictions
from pipeline.features.predictions.store import PredictionScore
from pipeline.features.review import store as review
from pipeline.features.snapshots.usecases import KeptSnapshots, takes_snapshots
from pipeline.index.encoders import EncoderProgress, measure_encoder, usual_model
from pipeline.kernel.errors import NotFound, StorageUnreachable, StoreUnavailable
from pipeline.kernel.feature import NIGHTLY, ScheduledJob
from pipeline.kernel.records import Memory, Page, Stage, page_of
from pipeline.kernel.store import changes, index_state, journal, memories, meta, work
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.operations import LoggedError, Operations, Worker
from pipeline.kernel.store.visibility import is_open_to
from pipeline.kernel.times import local_day_start, utc_text
from pipeline.kernel.workspace import Workspace

# Predictions are scored over seven days, including today.
SCORED = timedelta(days=6)
# Time spans for the counts of written and digested memories.
RECENT = (("minute", timedelta(minutes=1)), ("hour", timedelta(hours=1)), ("day", timedelta(days=1)))


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """Pending and dead-lettered work by stage, the oldest pending work, and the live workers."""

    pending: Mapping[Stage, int]
    dead: Mapping[Stage, int]
    oldest_by_stage: Mapping[Stage, float]
    workers: tuple[Worker, ...]

    @property
    def total(self) -> int:
        """Return the total number of pending items."""
        return sum(self.pending.values())

    @property
    def oldest_at(self) -> float | None:
        """Return when the oldest pending item was queued."""
        return min(self.oldest_by_stage.values(), default=None)

    @property
    def oldest_pending_s(self) -> float | None:
        """Return how long the oldest pending item has waited, in seconds."""
        return None if self.oldest_at is None else max(0.0, time.time() - self.oldest_at)


@dataclass(frozen=True, slots=True)
class DigestedCount:
    """Number of memories written in a recent time span, and how many of them are digested."""

    span: str
    written: int
    digested: int


@dataclass(frozen=True, slots=True)
class DeadMemory:
    """A memory, if it is still there, and its dead letters."""

    seq: int
    memory: Memory | None
    letters: tuple[work.DeadLetter, ...]


@dataclass(frozen=True, slots=True)
class WorkspaceSize:
    """The bytes that the parts of a workspace take."""

    events: int
    vectors: int
    lexical: int


@dataclass(frozen=True, slots=True)
class IndexStatistics:
    """The derived indexes, and the encoder for queries."""

    segment: str | None
    tail_rows: int
    passages: int
    progress: EncoderProgress
    encoder: str


@dataclass(frozen=True, slots=True)
class WorkspaceSummary:
    """A workspace, its number of active memories, and its encoder; `problem` says why it cannot be read."""

    id: str
    memories: int | None
    progress: EncoderProgress
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class WorkspaceStatistics:
    """The size of a workspace: memories, graph, indexes, prediction score and bytes."""

    workspace: str
    generation: int
    memories: journal.MemoryCounts
    graph: entities.GraphCounts
    index: IndexStatistics
    predictions: PredictionScore
    bytes: WorkspaceSize


def count_queue(workspace: Workspace, operations: Operations) -> QueueCounts:
    """Count the pending work of a workspace, and list the live workers."""
    workers = tuple(worker for worker in operations.workers() if is_alive(worker.owner))
    with workspace.database.read() as db:
        return QueueCounts(work.count_pending(db), work.count_dead(db), work.oldest_by_stage(db), workers)


def count_waiting(workspace: Workspace) -> int:
    """Count the pending work of a workspace; 0 if it does not exist yet."""
    try:
        with workspace.database.read() as db:
            return sum(work.count_pending(db).values())
    except NotFound:
        return 0


def count_digested(workspace: Workspace, now: datetime) -> list[DigestedCount]:
    """Count the memories written and digested recently."""
    with workspace.database.read() as db:
        return [DigestedCount(name, *work.count_digested_since(db, utc_text(now - length))) for name, length in RECENT]


def list_dead_letters(workspace: Workspace, limit: int, before: int | None) -> Page[DeadMemory]:
    """List the memories with permanently failed work, the last written first."""
    letters: dict[int, list[work.DeadLetter]] = {}
    with workspace.database.read() as db:
        for letter in work.list_dead_letters(db, limit + 1, before):
            letters.setdefault(letter.memory_seq, []).append(letter)
        known = memories.by_seqs(db, letters)
    dead = [
        DeadMemory(seq, _open_to(known.get(seq), workspace.person_id), tuple(those)) for seq, those in letters.items()
    ]
    return page_of(dead, limit, lambda memory: memory.seq)


def _open_to(memory: Memory | None, person: str | None) -> Memory | None:
    return memory if memory is not None and is_open_to(memory.scope, person) else None


def retry_dead_letters(workspace: Workspace, stage: Stage | None) -> int:
    """Queue the dead letters of one stage, or of all, again; return their number."""
    with workspace.database.write() as db:
        return work.retry(db, stage)


def rebuild_indexes(workspace: Workspace) -> int:
    """Queue every memory of a workspace for indexing; return their number."""
    return request_rebuild(workspace.database)


def list_errors(
    operations: Operations, workspace_id: str, limit: int, before: int | None, *, open_only: bool = False
) -> Page[LoggedError]:
    """List the errors of a workspace and those without a workspace, newest first; `open_only` skips repaired ones."""
    errors = operations.errors(workspace=workspace_id, limit=limit + 1, before=before, open_only=open_only)
    return page_of(errors, limit, lambda error: error.seq)


def summarize_workspace(workspace: Workspace) -> WorkspaceSummary:
    """Count the active memories of a workspace and name its encoder, or say why it cannot be read."""
    try:
        with workspace.database.read() as db:
            progress = measure_encoder(workspace.home_settings, db)
            return WorkspaceSummary(workspace.id, journal.count_memories(db).active, progress)
    except StoreUnavailable as error:
        return WorkspaceSummary(workspace.id, None, EncoderProgress(usual_model(workspace.home_settings)), str(error))


def measure_workspace(workspace: Workspace, encoder: str) -> WorkspaceStatistics:
    """Count what a workspace contains; `encoder` is the state of the encoder that queries its indexes."""
    with workspace.database.read() as db:
        progress = measure_encoder(workspace.home_settings, db)
        passages = index_state.count_expected_passages(db, progress.model)
        return WorkspaceStatistics(
            workspace.id,
            changes.generation(db),
            journal.count_memories(db),
            entities.counts(db),
            IndexStatistics(meta.get(db, meta.SEGMENT), index_state.count_tail(db), passages, progress, encoder),
            predictions.score(db, utc_text(datetime.now(UTC) - SCORED)[:10]),
            _measure_parts(workspace),
        )


def _measure_parts(workspace: Workspace) -> WorkspaceSize:
    paths = workspace.paths
    vectors = _measure_folder(paths.vectors) + _measure_folder(paths.turn_vectors)
    return WorkspaceSize(workspace.database.measure(), vectors, sum(map(_measure_folder, paths.segment_folders)))


def _measure_folder(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


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

    known: journal.Known
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


@lru_cache(maxsize=32)
def _count_known(
    database: Database,
    generation: int,  # noqa: ARG001 - part of the cache key: changes are counted again
    candidates: int,  # noqa: ARG001 - part of the cache key: a decision about a candidate is not a logged change
) -> journal.Known:
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
    began = utc_text(NIGHTLY.last_before(now))
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
        operations.errors_since(workspace.id, local_day_start(now.astimezone().date()).timestamp()),
        snapshot,
    )
