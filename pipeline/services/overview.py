"""The overview of a workspace: its size and growth, the changes of today, and its health."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache, partial
from sqlite3 import Connection

from config.process import is_alive
from config.settings import Settings
from pipeline.errors import StorageUnreachable
from pipeline.jobs.registry import NIGHTLY, JobState, JobStatus, ScheduledJob, job_statuses, list_scheduled_jobs
from pipeline.records import Memory
from pipeline.services.snapshots import KeptSnapshots, takes_snapshots
from pipeline.store import arcs, changes, entities, goals, impressions, journal, memories, review, work
from pipeline.store.arcs import ArcStatus, VisibleArc
from pipeline.store.database import Database
from pipeline.store.impressions import Tally
from pipeline.store.journal import Known
from pipeline.store.operations import Operations
from pipeline.store.visibility import is_open_to
from pipeline.times import utc_text
from pipeline.workspace import Workspace

SHOWN_CHANGES = 8
SHOWN_GOALS = 6
SHOWN_ARCS = 5
USEFUL_FOR = timedelta(days=30)
# Number of latest memories to search for one written by an agent, to see whether any agent is connected.
LOOKED_AT = 500
MOST_PERIODS = 62
# Sorts after every time as text.
END = ":"

# Words for the changes of a day, without maintenance such as decay and linking.
DONE: Mapping[str, str] = {
    changes.CREATE: "written",
    changes.EDIT: "edited",
    changes.MERGE: "merged",
    changes.ARCHIVE: "archived",
    changes.RESTORE: "restored",
    changes.CLOSE: "ended",
    changes.PURGE: "purged",
}


class GrowthUnit(StrEnum):
    """Length of a period."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class GrowthPeriod:
    """Number of memories added in a period, and the total at its end."""

    label: str
    count: int
    total: int


@dataclass(frozen=True, slots=True)
class Growth:
    """The last periods up to the latest memory; `earlier` is the number of memories before all of them."""

    unit: GrowthUnit
    earlier: int
    periods: tuple[GrowthPeriod, ...]

    @property
    def total(self) -> int:
        """Return the total number of memories."""
        return self.periods[-1].total

    @property
    def most(self) -> int:
        """Return the largest number of memories added in one period."""
        return max(period.count for period in self.periods)


@dataclass(frozen=True, slots=True)
class ChangeToday:
    """A change of today, and its memory unless that was purged since."""

    at: str
    done: str
    memory: Memory | None


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
    """The contents and growth of a workspace, the changes of today (word, count), the latest changes, and its health.

    `decisions` is the number of pending decisions, `lessons` the answers to lessons, `has_agents` whether any agent has
    used the workspace.
    """

    known: Known
    facts: int
    entities: int
    growth: Growth | None
    done: Sequence[tuple[str, int]]
    latest: Sequence[ChangeToday]
    goals: Sequence[Memory]
    arcs: Sequence[VisibleArc]
    lessons: Tally
    health: WorkspaceHealth
    decisions: int
    has_agents: bool


def read_overview(
    workspace: Workspace, operations: Operations, settings: Settings, snapshots: KeptSnapshots, now: datetime
) -> Overview:
    """Return the overview of a workspace at one time."""
    midnight = midnight_before(now)
    database = workspace.database
    # Query object storage before opening the store, so that no connection is kept open while waiting.
    snapshot = _find_newest_snapshot(workspace.id, settings, snapshots)
    with database.read() as db:
        waiting = review.count_waiting(db)
        known, done = _count_known(database, changes.generation(db), journal.count_candidates(db), midnight)
        return Overview(
            known,
            journal.count_current_facts(db, utc_text(now)),
            entities.count(db),
            _read_growth(db),
            [(word, done[op]) for op, word in DONE.items() if done.get(op)],
            _list_latest(db, midnight, workspace.person_id),
            goals.list_unfinished(db, workspace.onlooker, SHOWN_GOALS),
            arcs.page(db, workspace.onlooker, ArcStatus.ACTIVE, SHOWN_ARCS, None),
            impressions.tally_since(db, utc_text(now - USEFUL_FOR)),
            _check_health(workspace, db, operations, list_scheduled_jobs(settings), snapshot, now),
            waiting.decisions,
            journal.has_agent_writers(db, LOOKED_AT),
        )


def midnight_before(now: datetime) -> datetime:
    """Return the start of the local day of a time."""
    return datetime.combine(now.astimezone().date(), time.min).astimezone()


def nightly_before(now: datetime) -> datetime:
    """Return when the nightly jobs were last due before a time."""
    return NIGHTLY.last_before(now)


def chart_growth(first: date, last: date, count: Callable[[Sequence[str]], list[int]]) -> Growth:
    """Divide the time from the first to the last day; `count` returns the number between successive times."""
    unit = _choose_unit(first, last)
    starts = [_start_of(unit, last)]
    while starts[0] > first and len(starts) < MOST_PERIODS and starts[0] > date.min:
        starts.insert(0, _start_of(unit, starts[0] - timedelta(days=1)))
    earlier, *counts = count(["", *map(str, starts), END])
    periods, total = [], earlier
    for start, count_of_period in zip(starts, counts, strict=True):
        total += count_of_period
        periods.append(GrowthPeriod(_name_period(unit, start), count_of_period, total))
    return Growth(unit, earlier, tuple(periods))


def _choose_unit(first: date, last: date) -> GrowthUnit:
    days = (last - first).days
    for unit, length in ((GrowthUnit.DAY, 1), (GrowthUnit.WEEK, 7), (GrowthUnit.MONTH, 30)):
        if days < (MOST_PERIODS - 1) * length:
            return unit
    return GrowthUnit.YEAR


def _start_of(unit: GrowthUnit, day: date) -> date:
    match unit:
        case GrowthUnit.DAY:
            return day
        case GrowthUnit.WEEK:
            return day - timedelta(days=day.weekday())
        case GrowthUnit.MONTH:
            return day.replace(day=1)
        case GrowthUnit.YEAR:
            return day.replace(month=1, day=1)


def _name_period(unit: GrowthUnit, start: date) -> str:
    match unit:
        case GrowthUnit.DAY:
            return str(start)
        case GrowthUnit.WEEK:
            return f"week of {start}"
        case GrowthUnit.MONTH:
            return str(start)[:7]
        case GrowthUnit.YEAR:
            return str(start)[:4]


@lru_cache(maxsize=32)
def _count_known(
    database: Database,
    generation: int,  # noqa: ARG001 - part of the cache key: changes are counted again
    candidates: int,  # noqa: ARG001 - part of the cache key: a decision about a candidate is not a logged change
    midnight: datetime,
) -> tuple[Known, Mapping[str, int]]:
    """Return the counts of contents and of changes since midnight; the caller's transaction has this generation."""
    with database.read() as db:
        return journal.count_known(db), changes.tally_since(db, midnight)


def _read_growth(db: Connection) -> Growth | None:
    ends = journal.find_span(db)
    if ends is None:
        return None
    first, last = (date.fromisoformat(moment[:10]) for moment in ends)
    return chart_growth(first, last, partial(journal.count_between, db))


def _list_latest(db: Connection, midnight: datetime, person: str | None) -> list[ChangeToday]:
    latest = changes.list_latest_changes(db, midnight, list(DONE), SHOWN_CHANGES)
    latest_changes = [
        ChangeToday(utc_text(at), DONE[change.op], memories.get(db, change.memory_id)) for at, change in latest
    ]
    return [change for change in latest_changes if change.memory is None or is_open_to(change.memory.scope, person)]


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
