"""One run of a job: under its lock, recorded from beginning to end, whatever becomes of it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from pipeline.jobs.night import Job, Night, Report
from pipeline.store import changes, runs
from pipeline.store.database import Database
from pipeline.times import utc_now

# A lock outlives the longest run between two of its renewals, so that only a dead holder loses it.
LOCK_S = 300.0
# Progress is for people: noting it more often would only wake the disk.
NOTE_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: its id, its report, and the error that ended it, if one did."""

    run_id: str
    report: Report
    error: str | None


ErrorSink = Callable[[str], None]
Progress = Callable[[int, int], None]


def silently(_done: int, _total: int) -> None:
    """Tell nobody how far a run has come."""


def run_job(
    name: str,
    job: Job,
    database: Database,
    owner: str,
    *,
    pausing: Callable[[], bool],
    on_error: ErrorSink,
    on_progress: Progress = silently,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Outcome | None:
    """Run a job once on a workspace; return None when somebody else runs it now."""
    with database.write() as db:
        if not runs.lock(db, name, owner, time.time(), time.time() + LOCK_S):
            return None
        run_id = runs.begin(db, name, utc_now(), changes.written(db))
    progress = _noting(database, name, owner, run_id, on_progress)
    report, error = Report(), None
    try:
        report = job(Night(database, now(), pausing, progress))
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
    return Outcome(run_id, report, error)


def _noting(database: Database, name: str, owner: str, run_id: str, on_progress: Progress) -> Progress:
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
