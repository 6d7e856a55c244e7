"""Run a job once, under its lock, and record the run from start to end, whatever its result.

A job is a function of a JobRun. It does a limited amount of work, stops when its time is up or foreground work is
waiting, and reports whether work remains. Repeated after any interruption it reaches the same result: each transaction
is complete in itself, or the job derives everything again. Leases and locks of dead processes are released.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from sqlite3 import Connection

from pipeline.kernel.errors import EncoderPending
from pipeline.kernel.records import Stage
from pipeline.kernel.store import changes, runs, work
from pipeline.kernel.store.database import Database, wake_on_commit
from pipeline.kernel.times import utc_now, utc_text

# Longer than the longest time between two renewals of a lock, so that only a dead process loses it.
LOCK_S = 300.0
# Progress is for users; recording it more often would only cause disk writes.
NOTE_EVERY_S = 1.0

Progress = Callable[[int, int], None]


def show_no_progress(_done: int, _total: int) -> None:
    """Ignore the progress."""


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of a job on one workspace.

    `now` is the present for the job (UTC). `pausing` tells whether to stop at the next suitable point: the time is up,
    foreground work is waiting, or the process was asked to stop. `progress` takes the number of completed pieces and
    their total. `counts` are numbers of processed items by name.
    """

    database: Database
    now: datetime
    pausing: Callable[[], bool] = field(default=lambda: False)
    progress: Progress = field(default=show_no_progress)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def at(self) -> str:
        """Return `now` as text."""
        return utc_text(self.now)

    def report(self, *, more: bool) -> "Report":
        """Return a report with the counts."""
        return Report(dict(self.counts), more)


@dataclass(frozen=True, slots=True)
class Report:
    """The counts of a run, and whether it stopped before everything was done."""

    counts: Mapping[str, int] = field(default_factory=dict)
    more: bool = False


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run: its id, its report, and the error that ended it, if any."""

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
    """Run a job once on a workspace; return None if another process is running it."""
    with database.write() as db:
        if not runs.lock(db, name, owner, time.time(), time.time() + LOCK_S):
            return None
        run_id = runs.begin(db, name, utc_now(), changes.last_written(db))
    progress = _note_progress(database, name, owner, run_id, on_progress)
    report, error = Report(), None
    try:
        report = function(JobRun(database, now(), pausing, progress))
    except (KeyboardInterrupt, SystemExit):
        # The process was asked to stop: the run stays open, and the next process continues it at once.
        with database.write() as db:
            runs.unlock(db, name, owner)
        raise
    except EncoderPending as pending:
        # The run is tried again; waiting for an encoder is no fault.
        error = str(pending)
    except Exception as caught:  # noqa: BLE001 - whatever a job raises becomes its run's error
        error = f"{type(caught).__name__}: {caught}"
        on_error(error)
    with database.write() as db:
        runs.end(db, run_id, utc_now(), report.counts, error)
        runs.number_end(db, run_id)
        runs.unlock(db, name, owner)
    return RunResult(run_id, report, error)


def _note_progress(database: Database, name: str, owner: str, run_id: str, on_progress: Progress) -> Progress:
    """Return a function that reports and records progress, and renews the lock."""
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
    """List the owners of leases and locks."""
    return {*work.list_owners(db), *runs.list_lock_owners(db)}


def reap(database: Database, is_alive: Callable[[str], bool]) -> list[Stage]:
    """Release leases and locks of dead processes; wake and return the stages that can be claimed."""
    release_dead(database, is_alive)
    with database.read() as db:
        due = work.list_due_stages(db, time.time())
    if due:
        with database.write() as db:
            wake_on_commit(db, *due)
    return due


def release_dead(database: Database, is_alive: Callable[[str], bool]) -> None:
    """Release the leases and locks of dead processes."""
    with database.read() as db:
        gone = [owner for owner in list_holders(db) if not is_alive(owner)]
    if gone:
        with database.write() as db:
            for owner in gone:
                work.expire(db, owner)
                runs.release_locks_of(db, owner)
            work.dead_letter_vanished(db, time.time())
