"""Find the due work of each workspace; open a store only if it changed since the last look.

A scheduler saves its results when it stops, so that the next one does not open unchanged stores.
"""

import contextlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from config.paths import HomePaths
from config.process import is_alive
from config.settings import Settings
from pipeline.features.maintenance.registry import (
    due_times,
    list_requested_jobs,
    list_scheduled_jobs,
    list_unfinished_jobs,
)
from pipeline.kernel.errors import ReverieError
from pipeline.kernel.feature import ScheduledJob
from pipeline.kernel.job_runs import list_holders
from pipeline.kernel.store import unfinished_moves, work
from pipeline.kernel.store.database import Databases, StoreState
from pipeline.kernel.store.operations import Operations

# Two writes shortly after each other may leave the same file time, which some file systems round to seconds.
SAME_MOMENT_S = 2.5

ALWAYS, NEVER = -math.inf, math.inf


def list_clocked_jobs(settings: Settings) -> Mapping[str, ScheduledJob]:
    """Return the jobs that the scheduler sends to the workers."""
    return {job.name: job for job in list_scheduled_jobs(settings) if not job.elsewhere}


@dataclass(frozen=True, slots=True)
class DueWork:
    """The due work of a workspace: due jobs, the unfinished ones among them, and whether its stages have work.

    `is_known` is true if an earlier scheduler looked into the store last and nothing changed since.
    """

    workspace_id: str
    jobs: list[str]
    unfinished: list[str]
    work_waits: bool
    is_known: bool = False


@dataclass(frozen=True, slots=True)
class StoreOutlook:
    """The due times of a store's work, valid until its next write.

    `moments` is the due time of each job, `unfinished` the requested and interrupted jobs, `earliest` the first due
    time, `claimable` the time at which work can be claimed. If a process in `holders` is gone, its work is due at once.
    """

    state: StoreState
    looked_at: float
    moments: Mapping[str, float]
    unfinished: frozenset[str]
    earliest: float
    claimable: float
    holders: frozenset[str]
    # Whether the store had vectors and a lexical segment.
    indexes: tuple[bool, bool]

    def list_due(self, names: list[str], now: float) -> list[str]:
        """List the due jobs among some."""
        if now < self.earliest:
            return []
        return [name for name in names if name in self.unfinished or self.moments[name] <= now]

    def work_waits(self, now: float, lives: Callable[[str], bool]) -> bool:
        """Return whether work can be claimed, or a dead process has claimed some."""
        return self.claimable <= now or any(not lives(holder) for holder in self.holders)


class DueFinder:
    """Find the due work of every workspace without writing; log stores that cannot be read.

    For an unchanged workspace, read only the times of its files.
    """

    def __init__(
        self,
        paths: HomePaths,
        databases: Databases,
        operations: Operations,
        jobs: Mapping[str, ScheduledJob],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._paths = paths
        self._databases = databases
        self._operations = operations
        self._jobs = jobs
        self._clock = clock
        # One small record per workspace, without open files.
        self._outlooks: dict[str, StoreOutlook] = {}
        self._restored = self._restore()

    def find(self, names: list[str]) -> Iterator[DueWork]:
        """Yield the due work of each workspace, of some jobs and all stages."""
        lives = cache(is_alive)
        # Read the states first, so that a write during a look is noticed at the next one.
        states = self._databases.states()
        self._outlooks = {name: outlook for name, outlook in self._outlooks.items() if name in states}
        for workspace_id, state in states.items():
            due = self._find(workspace_id, state, names, lives)
            if due is not None:
                yield due

    def _find(
        self, workspace_id: str, state: StoreState, names: list[str], lives: Callable[[str], bool]
    ) -> DueWork | None:
        now = self._clock()
        try:
            outlook = self._outlook(workspace_id, state, now)
        except ReverieError as error:
            self._operations.record_error("scheduler", str(error), workspace=workspace_id)
            return None
        due = outlook.list_due(names, now)
        unfinished = [name for name in due if name in outlook.unfinished]
        is_known = self._restored.get(workspace_id) is outlook
        return DueWork(workspace_id, due, unfinished, outlook.work_waits(now, lives), is_known)

    def _outlook(self, workspace_id: str, state: StoreState, now: float) -> StoreOutlook:
        known = self._outlooks.get(workspace_id)
        # If the clock was set back, other work is due.
        if known is not None and known.state == state and known.looked_at <= now:
            return known
        outlook = self._look(workspace_id, state, now)
        # Only then the next write will certainly change the state of the files.
        if max(changed for _, changed, _ in state) / 1e9 < now - SAME_MOMENT_S:
            self._outlooks[workspace_id] = outlook
        else:
            self._outlooks.pop(workspace_id, None)
        return outlook

    def _look(self, workspace_id: str, state: StoreState, now: float) -> StoreOutlook:
        moment = datetime.fromtimestamp(now, UTC)
        with self._databases.get(workspace_id).read() as db:
            moments = due_times(db, self._jobs.values(), moment)
            unfinished = {*list_requested_jobs(db), *list_unfinished_jobs(db, moments)}
            claimable = now if unfinished_moves.list_ids(db) else work.find_next_claimable(db, now)
            holders = list_holders(db)
        due_from = {name: _seconds(due, moment) for name, due in moments.items()}
        return StoreOutlook(
            state,
            now,
            due_from,
            frozenset(unfinished),
            ALWAYS if unfinished else min(due_from.values(), default=NEVER),
            NEVER if claimable is None else claimable,
            frozenset(holders),
            self._find_indexes(workspace_id),
        )

    def _find_indexes(self, workspace_id: str) -> tuple[bool, bool]:
        paths = self._paths.workspace(workspace_id)
        return paths.vectors.is_dir(), paths.lexical.is_dir()

    def keep(self) -> None:
        """Save the due times of the stores for the next scheduler."""
        draft = self._paths.outlooks.with_suffix(".new")
        known = {name: asdict(outlook) for name, outlook in self._outlooks.items()}
        text = json.dumps({"rules": self._rules(), "stores": known}, default=sorted)
        try:
            draft.write_text(text, encoding="utf-8")
            draft.replace(self._paths.outlooks)
        except OSError as error:
            self._operations.record_error("scheduler", f"Cannot save the due times of the stores: {error}")

    def _restore(self) -> dict[str, StoreOutlook]:
        # An invalid file is ignored: looking into the stores again is always correct.
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            stored = json.loads(self._paths.outlooks.read_text(encoding="utf-8"))
            if stored["rules"] == self._rules():
                outlooks = {name: _outlook_of(fields) for name, fields in stored["stores"].items()}
                usable = {
                    name: outlook for name, outlook in outlooks.items() if outlook.indexes == self._find_indexes(name)
                }
                self._outlooks |= usable
                return usable
        return {}

    def _rules(self) -> list[str]:
        """Return the other inputs of the due times: the schedules of the jobs and the time zone."""
        offset = datetime.fromtimestamp(self._clock(), UTC).astimezone().utcoffset()
        return [*(f"{name} {job.schedule} {job.idle}" for name, job in self._jobs.items()), str(offset)]


def _outlook_of(fields: Mapping[str, Any]) -> StoreOutlook:
    (inode, changed, size), (log_inode, log_changed, log_size) = fields["state"]
    vectors, lexical = fields["indexes"]
    return StoreOutlook(
        ((inode, changed, size), (log_inode, log_changed, log_size)),
        float(fields["looked_at"]),
        {str(name): float(moment) for name, moment in fields["moments"].items()},
        frozenset(fields["unfinished"]),
        float(fields["earliest"]),
        float(fields["claimable"]),
        frozenset(fields["holders"]),
        (bool(vectors), bool(lexical)),
    )


def _seconds(due: datetime | None, now: datetime) -> float:
    if due is None:
        return NEVER
    return ALWAYS if due <= now else due.timestamp()
