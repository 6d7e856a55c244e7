"""Run a job once: under its lock, recorded from beginning to end, whatever becomes of it.

A job is a function of a JobRun: it does a bounded piece of work, stops when its time is up or somebody waits in the
foreground, and says whether more is left. Run again after any interruption it comes to the same end: it either changes
rows in transactions that are complete in themselves, or derives everything anew. What a dead process held is reaped.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from sqlite3 import Connection

from pipeline.records import Stage
from pipeline.store import changes, runs, work
from pipeline.store.database import Database, wake_on_commit
from pipeline.times import utc_now, utc_text

# A lock outlives the longest run between two of its renewals, so that only a dead holder loses it.
LOCK_S = 300.0
# Progress is for people: noting it more often would only wake the disk.
NOTE_EVERY_S = 1.0

Progress = Callable[[int, int], None]


def show_no_progress(_done: int, _total: int) -> None:
    """Show nobody how far a run has come."""


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of a job on one workspace.

    `now` is the moment that the job takes for the present (UTC). `pausing` tells whether to stop at the next good
    place: time is up, foreground work waits, or the process is asked to end. `progress` takes how many pieces are done
    and how many there are. `counts` are of what was done, by countable things.
    """

    database: Database
    now: datetime
    pausing: Callable[[], bool] = field(default=lambda: False)
    progress: Progress = field(default=show_no_progress)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def at(self) -> str:
        """Return the present moment as text."""
        return utc_text(self.now)

    def report(self, *, more: bool) -> "Report":
        """Return the report of what was counted."""
        return Report(dict(self.counts), more)


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did, by countable things, and whether it stopped before everything was done."""

    counts: Mapping[str, int] = field(default_factory=dict)
    more: bool = False


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended: its id, its report, and the error that ended it, if one did."""

    run_id: str
    report: Report
    error: str | None


def run_job(
    name: str,
    function: Callable[[JobRun], Report],
    database: Database,
    owner: str,
    *,
    pausing: Callable[[], bool],
    on_error: Callable[[str], None],
    on_progress: Progress = show_no_progress,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> RunResult | None:
    """Run a job once on a workspace; return None when somebody else runs it now."""
    with database.write() as db:
        if not runs.lock(db, name, owner, time.time(), time.time() + LOCK_S):
            return None
        run_id = runs.begin(db, name, utc_now(), changes.last_written(db))
    progress = _note_progress(database, name, owner, run_id, on_progress)
    report, error = Report(), None
    try:
        report = function(JobRun(database, now(), pausing, progress))
    except (KeyboardInterrupt, SystemExit):
        # This process is asked to end: the run stays open, and whoever comes next takes it up at once.
        with database.write() as db:
            runs.unlock(db, name, owner)
        raise
    except Exception as caught:  # noqa: BLE001 - whatever a job raises becomes its run's error
        error = f"{type(caught).__name__}: {caught}"
        on_error(error)
    with database.write() as db:
        runs.end(db, run_id, utc_now(), report.counts, error)
        runs.unlock(db, name, owner)
    return RunResult(run_id, report, error)


def _note_progress(database: Database, name: str, owner: str, run_id: str, on_progress: Progress) -> Progress:
    """Return what tells how far a run has come, notes it now and then, and keeps the lock meanwhile."""
    noted = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal noted
        on_progress(done, total)
        if time.monotonic() - noted >= NOTE_EVERY_S:
            noted = time.monotonic()
            with database.write() as db:
                runs.note_progress(db, run_id, done, total)
                runs.lock(db, name, owner, time.time(), time.time() + LOCK_S)

    return progress


def list_holders(db: Connection) -> set[str]:
    """List who holds leases or locks."""
    return {*work.list_owners(db), *runs.list_lock_owners(db)}


def reap(database: Database, is_alive: Callable[[str], bool]) -> list[Stage]:
    """Release leases and locks of holders that are gone; wake and return the stages that have something to claim."""
    release_dead(database, is_alive)
    with database.read() as db:
        due = work.list_due_stages(db, time.time())
    if due:
        with database.write() as db:
            wake_on_commit(db, *due)
    return due


def release_dead(database: Database, is_alive: Callable[[str], bool]) -> None:
    """Take back the leases and locks of holders that are gone."""
    with database.read() as db:
        gone = [owner for owner in list_holders(db) if not is_alive(owner)]
    if gone:
        with database.write() as db:
            for owner in gone:
                work.expire(db, owner)
                runs.drop_locks(db, owner)
            work.dead_letter_vanished(db, time.time())
