"""Runs of maintenance jobs: requested, started, ended; job locks, and use of the optional language model.

Locks expire: their holder may have been killed. Their times are seconds since the epoch.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from sqlite3 import Connection

from ulid import ULID

from pipeline.kernel.store.database import wake_on_commit
from pipeline.kernel.store.rows import Rows, Table
from pipeline.kernel.times import parse

KEPT_RUNS = 50


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a job; `ok` is None until it ends, `generation` is the change number at its start."""

    id: str
    name: str
    asked_at: str
    started_at: str | None
    ended_at: str | None
    ok: bool | None
    counts: Mapping[str, int]
    error: str | None
    done: int
    total: int
    generation: int

    @property
    def took_s(self) -> float | None:
        """Return its duration in seconds, None until it ends."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (parse(self.ended_at) - parse(self.started_at)).total_seconds()


_RUNS = Rows(Run, "job_run")


def request(db: Connection, name: str, at: str) -> str:
    """Request a run and return its id; the commit wakes a worker. A run that has not started is reused."""
    wake_on_commit(db, None)
    return _request_run(db, name, at)


def _request_run(db: Connection, name: str, at: str) -> str:
    row = db.execute("SELECT id FROM job_run WHERE name = ? AND started_at IS NULL", (name,)).fetchone()
    if row is not None:
        return str(row[0])
    run_id = str(ULID())
    db.execute("INSERT INTO job_run (id, name, asked_at) VALUES (?, ?, ?)", (run_id, name, at))
    return run_id


def list_requested(db: Connection) -> list[str]:
    """List the requested jobs that have not started, in order."""
    return [row[0] for row in db.execute("SELECT name FROM job_run WHERE started_at IS NULL ORDER BY seq")]


def begin(db: Connection, name: str, at: str, generation: int) -> str:
    """Resume the interrupted run, or start the requested run or a new one; return its id.

    The caller has the job's lock, so an unfinished run belongs to no other process.
    """
    row = db.execute(
        "SELECT id FROM job_run WHERE name = ? AND started_at IS NOT NULL AND ended_at IS NULL", (name,)
    ).fetchone()
    run_id = _request_run(db, name, at) if row is None else str(row[0])
    db.execute("UPDATE job_run SET started_at = ?, generation = ? WHERE id = ?", (at, generation, run_id))
    return run_id


def note_progress(db: Connection, run_id: str, done: int, total: int) -> None:
    """Record the progress of a run."""
    db.execute("UPDATE job_run SET done = ?, total = ? WHERE id = ?", (done, total, run_id))


def end(db: Connection, run_id: str, at: str, counts: Mapping[str, int], error: str | None) -> None:
    """End a run, and delete the oldest runs of its job."""
    db.execute(
        "UPDATE job_run SET ended_at = ?, ok = ?, counts = ?, error = ? WHERE id = ?",
        (at, error is None, json.dumps(counts), error, run_id),
    )
    db.execute(
        "WITH mine AS (SELECT seq FROM job_run WHERE started_at IS NOT NULL "
        "AND name = (SELECT name FROM job_run WHERE id = ?) ORDER BY seq DESC LIMIT ? OFFSET ?) "
        "DELETE FROM job_run WHERE seq IN (SELECT seq FROM mine)",
        (run_id, 2**62, KEPT_RUNS),
    )


def number_end(db: Connection, run_id: str) -> None:
    """Number a finished run after all others, so that readers of events see its end."""
    db.execute(
        "UPDATE job_run SET end_number = (SELECT coalesce(max(end_number), 0) + 1 FROM job_run) WHERE id = ?",
        (run_id,),
    )


def last(db: Connection, name: str) -> Run | None:
    """Return the last started run of a job."""
    return _RUNS.fetch_one(db, "WHERE name = ? AND started_at IS NOT NULL ORDER BY seq DESC LIMIT 1", (name,))


def lock(db: Connection, name: str, owner: str, now: float, until: float) -> bool:
    """Take a job's lock unless another holder has it; return whether the caller has it."""
    db.execute(
        "INSERT INTO job_lock VALUES (?, ?, ?) "
        "ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until "
        "WHERE job_lock.owner = excluded.owner OR job_lock.until <= ?",
        (name, owner, until, now),
    )
    return bool(db.execute("SELECT owner = ? FROM job_lock WHERE name = ?", (owner, name)).fetchone()[0])


def unlock(db: Connection, name: str, owner: str) -> None:
    """Release a lock."""
    db.execute("DELETE FROM job_lock WHERE name = ? AND owner = ?", (name, owner))


def list_held_locks(db: Connection, now: float) -> dict[str, str]:
    """Return the holder of each job's lock."""
    return dict(db.execute("SELECT name, owner FROM job_lock WHERE until > ?", (now,)).fetchall())


def list_lock_owners(db: Connection) -> list[str]:
    """List the holders of locks."""
    return [row[0] for row in db.execute("SELECT DISTINCT owner FROM job_lock")]


def release_locks_of(db: Connection, owner: str) -> None:
    """Release the locks of a holder that is known to be gone."""
    db.execute("DELETE FROM job_lock WHERE owner = ?", (owner,))


def reserve_tokens(db: Connection, day: str, job: str, tokens: int, cap: int) -> bool:
    """Reserve the tokens of a call within the day's limit; return whether they are reserved."""
    if count_tokens(db, day) + tokens > cap:
        return False
    db.execute(
        "INSERT INTO model_use VALUES (?, ?, 1, 0, ?) "
        "ON CONFLICT (day, job) DO UPDATE SET calls = model_use.calls + 1, tokens = model_use.tokens + excluded.tokens",
        (day, job, tokens),
    )
    return True


def correct_tokens(db: Connection, day: str, job: str, tokens: int) -> None:
    """Add tokens to a job's use; negative numbers release unused reservations."""
    db.execute("UPDATE model_use SET tokens = max(0, tokens + ?) WHERE day = ? AND job = ?", (tokens, day, job))


def count_model_failure(db: Connection, day: str, job: str) -> None:
    """Count a call with a useless answer."""
    db.execute("UPDATE model_use SET failures = failures + 1 WHERE day = ? AND job = ?", (day, job))


def count_tokens(db: Connection, day: str) -> int:
    """Return the tokens that all jobs used on a day, including reservations of running calls."""
    return int(db.execute("SELECT coalesce(sum(tokens), 0) FROM model_use WHERE day = ?", (day,)).fetchone()[0])


TABLES = (Table("job_run"), Table("job_lock", ("name",)), Table("model_use", ("day", "job")))
