"""The operations journal of a home: background errors and running workers. It is not truth and may be deleted."""

import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlite_utils
from sqlite_utils import Migrations

from config.paths import file_identity
from pipeline.errors import StoreDamaged, StoreUnavailable
from pipeline.store.backup import LOG_SUFFIXES
from pipeline.store.failures import failure_of
from pipeline.store.migrations import make_ready

KEPT_ERRORS = 2000
KEPT_CHARS = 4000

MIGRATIONS = Migrations("operations")


@MIGRATIONS()
def m001_journal(db: sqlite_utils.Database) -> None:
    """Create the error log and the list of workers."""
    db.execute(
        "CREATE TABLE error (seq INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, workspace TEXT, "
        "component TEXT NOT NULL, message TEXT NOT NULL)"
    )
    db.execute("CREATE TABLE worker (owner TEXT PRIMARY KEY, started_at REAL NOT NULL, seen_at REAL NOT NULL)")


@MIGRATIONS()
def m002_repaired(db: sqlite_utils.Database) -> None:
    """Tell since when what failed has worked again."""
    db.execute("ALTER TABLE error ADD COLUMN repaired_at REAL")


@MIGRATIONS()
def m003_hook_runs(db: sqlite_utils.Database) -> None:
    """Keep what was put before agents."""
    db.execute(
        "CREATE TABLE hook_run (seq INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, event TEXT NOT NULL, "
        "host TEXT NOT NULL, workspace TEXT NOT NULL, session_id TEXT, took_ms REAL NOT NULL, outcome TEXT NOT NULL, "
        "memory_ids TEXT NOT NULL, reason TEXT, text TEXT NOT NULL, trace TEXT)"
    )
    db.execute("CREATE INDEX hook_run_at ON hook_run (at)")
    db.execute("CREATE INDEX hook_run_session ON hook_run (session_id, seq) WHERE session_id IS NOT NULL")


@dataclass(frozen=True, slots=True)
class LoggedError:
    """One background error, and since when what failed has worked again."""

    seq: int
    at: float
    workspace: str | None
    component: str
    message: str
    repaired_at: float | None = None


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker process as it last reported."""

    owner: str
    started_at: float
    seen_at: float


class Operations:
    """Record and read what happened behind the web server."""

    def __init__(self, file: Path, redact: Callable[[str], str]) -> None:
        self._file = file
        self.redact = redact
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None

    def record_error(self, component: str, message: str, *, workspace: str | None = None) -> None:
        """Log an error, redacted and cut; one that cannot be stored still reaches standard error."""
        text = self.redact(message)[:KEPT_CHARS]
        try:
            with self.opened() as db:
                db.execute(
                    "INSERT INTO error (at, workspace, component, message) VALUES (?, ?, ?, ?)",
                    (time.time(), workspace, component, text),
                )
                db.execute("DELETE FROM error WHERE seq <= (SELECT max(seq) FROM error) - ?", (KEPT_ERRORS,))
        except (sqlite3.Error, StoreUnavailable, OSError) as error:
            print(f"{component}: {text} (not logged: {error})", file=sys.stderr)  # noqa: T201 - the last resort

    def mark_repaired(self, components: Sequence[str], *, workspace: str | None, before: float) -> None:
        """Note that what failed in a workspace, or without one in none, before a moment works again."""
        names = ", ".join("?" * len(components))
        broken = f"workspace IS NOT DISTINCT FROM ? AND component IN ({names}) AND at < ? AND repaired_at IS NULL"
        found = (workspace, *components, before)
        with self.opened() as db:
            # Mostly there is nothing to be noted, and nobody is to wait for a lock then.
            if db.execute(f"SELECT 1 FROM error WHERE {broken} LIMIT 1", found).fetchone():  # noqa: S608 - constant but for its places
                db.execute(f"UPDATE error SET repaired_at = ? WHERE {broken}", (time.time(), *found))  # noqa: S608 - ditto

    def errors(
        self, *, workspace: str | None, limit: int, before: int | None = None, open_only: bool = False
    ) -> list[LoggedError]:
        """List errors newest first: a workspace's own and those of no workspace; all, or those not repaired since."""
        with self.opened() as db:
            rows = db.execute(
                "SELECT seq, at, workspace, component, message, repaired_at FROM error "
                "WHERE (workspace IS NULL OR workspace = ?) AND seq < ? AND (repaired_at IS NULL OR ? = 0) "
                "ORDER BY seq DESC LIMIT ?",
                (workspace, 2**62 if before is None else before, open_only, limit),
            )
            return [LoggedError(*row) for row in rows.fetchall()]

    def errors_since(self, workspace: str, at: float) -> int:
        """Count the errors since a moment: a workspace's own and those of no workspace."""
        with self.opened() as db:
            row = db.execute(
                "SELECT count(*) FROM error WHERE (workspace IS NULL OR workspace = ?) AND at >= ?", (workspace, at)
            ).fetchone()
            return int(row[0])

    def report_worker(self, owner: str) -> None:
        """Note that a worker lives."""
        now = time.time()
        with self.opened() as db:
            db.execute(
                "INSERT INTO worker VALUES (?, ?, ?) ON CONFLICT (owner) DO UPDATE SET seen_at = excluded.seen_at",
                (owner, now, now),
            )

    def forget_worker(self, owner: str) -> None:
        """Note that a worker is gone."""
        with self.opened() as db:
            db.execute("DELETE FROM worker WHERE owner = ?", (owner,))

    def workers(self) -> list[Worker]:
        """List the workers that reported and were not reported gone."""
        with self.opened() as db:
            rows = db.execute("SELECT owner, started_at, seen_at FROM worker ORDER BY started_at")
            return [Worker(*row) for row in rows.fetchall()]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection, to one thread at a time; raise StoreUnavailable where the file cannot be used."""
        with self._lock:
            try:
                yield self._connection()
            except sqlite3.Error as error:
                raise failure_of(error, self._file) or error from error

    def _connection(self) -> sqlite3.Connection:
        # The file may be deleted while we run: an open connection would go on writing into nowhere.
        if self._db is None or self._identity != file_identity(self._file):
            if self._db is not None:
                self._db.close()
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                self._db = self._open()
            except sqlite3.DatabaseError as error:
                if not isinstance(failure_of(error, self._file), StoreDamaged):
                    raise
                self._begin_anew(error)
                self._db = self._open()
            self._identity = file_identity(self._file)
        return self._db

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._file, timeout=5, isolation_level=None, check_same_thread=False)
        try:
            make_ready(db, self._file, MIGRATIONS)
            db.execute("PRAGMA synchronous=NORMAL")
            # What is purged leaves no byte here either.
            db.execute("PRAGMA secure_delete=ON")
        except BaseException:
            db.close()
            raise
        return db

    def _begin_anew(self, error: sqlite3.Error) -> None:
        """Put a damaged journal aside: what it told is lost, and nothing else."""
        aside = self._file.with_suffix(".damaged")
        self._file.replace(aside)
        for suffix in LOG_SUFFIXES:
            self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)
        print(f"{self._file} was damaged ({error}); it is begun anew, and kept as {aside}", file=sys.stderr)  # noqa: T201 - no other log is left
