"""What is due in each workspace, looked for in its store only when something was written to it since the last look."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

from config.paths import FileState, HomePaths, file_state
from config.process import is_alive
from pipeline.errors import ReverieError
from pipeline.jobs.registry import ScheduledJob, due_moments, list_requested_jobs, list_unfinished_jobs
from pipeline.jobs.runner import list_holders
from pipeline.store import work
from pipeline.store.database import Databases
from pipeline.store.operations import Operations

# Two writes of one moment leave a file the same time, which some file systems round to seconds.
SAME_MOMENT_S = 2.5

# Of a store and of its log.
StoreState = tuple[FileState, FileState]
NO_FILE = (0, 0, 0)
ALWAYS, NEVER = -math.inf, math.inf


@dataclass(frozen=True, slots=True)
class DueWork:
    """What there is to do in a workspace: jobs that are due, those of them that are unfinished, work for its stages."""

    workspace_id: str
    jobs: list[str]
    unfinished: list[str]
    work_waits: bool


@dataclass(frozen=True, slots=True)
class StoreOutlook:
    """What a store says of now and of later, true until something is written to it.

    From when on each job is due, which were asked for or interrupted, from when on any of them is due and work can be
    claimed, and who holds work or jobs: when one of those is gone, there is something to do at once.
    """

    files: StoreState
    looked_at: float
    moments: Mapping[str, float]
    unfinished: frozenset[str]
    earliest: float
    claimable: float
    holders: frozenset[str]

    def list_due(self, names: list[str], now: float) -> list[str]:
        """List those of some jobs that are due."""
        if now < self.earliest:
            return []
        return [name for name in names if name in self.unfinished or self.moments[name] <= now]

    def work_waits(self, now: float, lives: Callable[[str], bool]) -> bool:
        """Tell whether work can be claimed, or is held by somebody who is gone."""
        return self.claimable <= now or any(not lives(holder) for holder in self.holders)


class DueFinder:
    """Tell what is due in every workspace of a home, without writing; a store that cannot be read is logged.

    Of a workspace in which nothing happens only the times of its files are read.
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
        self._folder = str(paths.workspaces)
        self._databases = databases
        self._operations = operations
        self._jobs = jobs
        self._clock = clock
        # One small record for each workspace that exists; files are open of none.
        self._outlooks: dict[str, StoreOutlook] = {}

    def find(self, names: list[str]) -> Iterator[DueWork]:
        """Go through the workspaces and tell which of some jobs, and what other work, is due in each."""
        lives = cache(is_alive)
        existing = self._paths.workspace_ids()
        self._forget_others(existing)
        for workspace_id in existing:
            found = self._find(workspace_id, names, lives)
            if found is not None:
                yield found

    def _find(self, workspace_id: str, names: list[str], lives: Callable[[str], bool]) -> DueWork | None:
        now = self._clock()
        try:
            outlook = self._outlook(workspace_id, now)
        except ReverieError as error:
            self._operations.record_error("scheduler", str(error), workspace=workspace_id)
            return None
        due = outlook.list_due(names, now)
        unfinished = [name for name in due if name in outlook.unfinished]
        return DueWork(workspace_id, due, unfinished, outlook.work_waits(now, lives))

    def _outlook(self, workspace_id: str, now: float) -> StoreOutlook:
        # Before the look: what is written during it is found by the next.
        files = _store_state(f"{self._folder}/{workspace_id}/events.sqlite")
        known = self._outlooks.get(workspace_id)
        # A clock that was set back makes other things due.
        if known is not None and known.files == files and known.looked_at <= now:
            return known
        outlook = self._look(workspace_id, files, now)
        if _is_settled(files, now):
            self._outlooks[workspace_id] = outlook
        else:
            self._outlooks.pop(workspace_id, None)
        return outlook

    def _look(self, workspace_id: str, files: StoreState, now: float) -> StoreOutlook:
        moment = datetime.fromtimestamp(now, UTC)
        with self._databases.get(workspace_id).read() as db:
            moments = due_moments(db, self._jobs.values(), moment)
            unfinished = {*list_requested_jobs(db), *list_unfinished_jobs(db, moments)}
            claimable = work.find_next_claimable(db, now)
            holders = list_holders(db)
        due_from = {name: _seconds(due, moment) for name, due in moments.items()}
        return StoreOutlook(
            files,
            now,
            due_from,
            frozenset(unfinished),
            ALWAYS if unfinished else min(due_from.values(), default=NEVER),
            NEVER if claimable is None else claimable,
            frozenset(holders),
        )

    def _forget_others(self, existing: list[str]) -> None:
        for workspace_id in self._outlooks.keys() - set(existing):
            self._outlooks.pop(workspace_id, None)


def _seconds(due: datetime | None, now: datetime) -> float:
    if due is None:
        return NEVER
    return ALWAYS if due <= now else due.timestamp()


def _store_state(events: str) -> StoreState:
    log = _state_of(f"{events}-wal")
    # Whoever opens a store makes an empty log, whoever closes it last takes it away.
    return _state_of(events), log if log[2] else NO_FILE


def _state_of(file: str) -> FileState:
    try:
        return file_state(file)
    except FileNotFoundError:
        return NO_FILE


def _is_settled(files: StoreState, now: float) -> bool:
    """Tell whether the next write is sure to change what the files' state says."""
    return max(changed for _, changed, _ in files) / 1e9 < now - SAME_MOMENT_S
