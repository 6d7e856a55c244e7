"""One workspace's SQLite file: a writer, a reader for each thread, and typed errors."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from config.paths import HomePaths, WorkspacePaths, file_identity
from pipeline.errors import NotFound, StoreBusy, StoreFull, StoreUnavailable
from pipeline.records import Stage
from pipeline.store.migrations import MIGRATIONS, make_ready

# Every thread that reads has a cache of its own; what is in none of them is still in the system's.
CACHE_KIB = 2000


@dataclass(frozen=True, slots=True)
class WriterProfile:
    """How a process commits.

    `FULL` syncs every commit: what the web server acknowledges survives a power cut. Workers commit `NORMAL`: their
    work is idempotent and is found again, and their shorter commits hold up the web server less. Checkpoints
    (`checkpoint_pages`, 0 for never) are the workers' job, so that no acknowledged write pays for one.
    """

    synchronous: Literal["FULL", "NORMAL"]
    checkpoint_pages: int
    busy_timeout_ms: int


_Connection = TypeVar("_Connection", bound=sqlite3.Connection)

# What a commit has for the workers: work of a stage, or, as None, of some other sort.
WakeUps = AbstractSet[Stage | None]


class WriteConnection(sqlite3.Connection):
    """A connection whose transaction collects whom its commit wakes."""

    wake_ups: set[Stage | None]


def wake_on_commit(db: sqlite3.Connection, *stages: Stage | None) -> None:
    """Have the workers of stages, or with None whoever looks after the rest, woken as soon as this is committed."""
    # A copy of a store that is written to has no workers.
    if isinstance(db, WriteConnection):
        db.wake_ups.update(stages)


def wake_nobody(*_queued: object) -> None:
    """Commit where no worker waits, or where the scheduler finds the work."""


class Database:
    """Open one events.sqlite for reading from any thread and writing from one at a time.

    After each commit that queued work, `on_commit` is called with what it queued, outside of every lock.
    """

    def __init__(
        self,
        file: Path,
        profile: WriterProfile,
        *,
        create: bool,
        on_commit: Callable[[WakeUps], None] = wake_nobody,
    ) -> None:
        if create:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif not file.is_file():
            raise NotFound("no such workspace")
        self.file = file
        self._profile = profile
        self._on_commit = on_commit
        self._lock = threading.Lock()
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._readers_lock = threading.Lock()
        with _typed_errors():
            self._writer = self._connect(WriteConnection)
            make_ready(self._writer, file, MIGRATIONS, snapshots=WorkspacePaths(file.parent).snapshots)
            self._writer.execute(f"PRAGMA synchronous={profile.synchronous}")
            self._writer.execute(f"PRAGMA wal_autocheckpoint={profile.checkpoint_pages}")
            self._writer.execute("PRAGMA secure_delete=ON")

    def _connect(self, kind: type[_Connection]) -> _Connection:
        connection = sqlite3.connect(
            self.file,
            timeout=self._profile.busy_timeout_ms / 1000,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            factory=kind,
        )
        connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        return connection

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Run one immediate transaction; commit on success, roll back on any error."""
        if not self._lock.acquire(timeout=self._profile.busy_timeout_ms / 1000):
            raise StoreBusy("another write holds the store")
        try:
            with _typed_errors():
                self._writer.execute("BEGIN IMMEDIATE")
                self._writer.wake_ups = set()
                try:
                    yield self._writer
                    self._writer.execute("COMMIT")
                except BaseException:
                    if self._writer.in_transaction:
                        self._writer.execute("ROLLBACK")
                    raise
                wake_ups = self._writer.wake_ups
        finally:
            self._lock.release()
        if wake_ups:
            self._on_commit(wake_ups)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Run reads on one consistent snapshot; nested reads share the outer one."""
        connection = self._reader()
        if connection.in_transaction:
            yield connection
            return
        with _typed_errors():
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    def _reader(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "reader", None)
        if connection is None:
            with _typed_errors():
                connection = self._connect(sqlite3.Connection)
                connection.execute("PRAGMA query_only=ON")
            self._local.reader = connection
            with self._readers_lock:
                self._readers.append(connection)
        return connection

    def checkpoint(self) -> None:
        """Move the whole write-ahead log into the file and empty it; raise StoreBusy when a reader is in the way."""
        with self._lock, _typed_errors():
            busy = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise StoreBusy("a reader keeps the write-ahead log from being emptied")

    def close(self) -> None:
        """Close every connection; no thread may use the database afterwards."""
        with self._lock, self._readers_lock:
            for connection in (*self._readers, self._writer):
                connection.close()
            self._readers.clear()


class Databases:
    """Open each workspace's database once, and again when its file was replaced.

    `on_commit` is called with a workspace and what a commit there queued.
    """

    def __init__(
        self,
        paths: HomePaths,
        profile: WriterProfile,
        on_commit: Callable[[str, WakeUps], None] = wake_nobody,
    ) -> None:
        self._paths = paths
        self._profile = profile
        self._on_commit = on_commit
        self._lock = threading.Lock()
        self._open: dict[str, tuple[Database, tuple[int, int]]] = {}

    def get(self, workspace_id: str, *, create: bool = False) -> Database:
        """Return a workspace's database; raise NotFound when it does not exist and is not to be made."""
        file = self._paths.workspace(workspace_id).events
        known = self._open.get(workspace_id)
        if known is not None and known[1] == file_identity(file):
            return known[0]
        with self._lock:
            known = self._open.get(workspace_id)
            if known is not None and known[1] == file_identity(file):
                return known[0]
            on_commit = partial(self._on_commit, workspace_id)
            database = Database(file, self._profile, create=create, on_commit=on_commit)
            identity = file_identity(file)
            if identity is None:
                raise NotFound("no such workspace")
            self._open[workspace_id] = (database, identity)
            return database

    def close(self) -> None:
        """Close every database."""
        with self._lock:
            for database, _ in self._open.values():
                database.close()
            self._open.clear()


@contextmanager
def _typed_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", None)
        primary = None if code is None else code & 0xFF
        if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreBusy("another process holds the store") from error
        if primary == sqlite3.SQLITE_FULL:
            raise StoreFull("the disk under the store is full") from error
        if primary in (
            sqlite3.SQLITE_IOERR,
            sqlite3.SQLITE_READONLY,
            sqlite3.SQLITE_CANTOPEN,
            sqlite3.SQLITE_CORRUPT,
            sqlite3.SQLITE_NOTADB,
        ):
            raise StoreUnavailable(f"the store cannot be used: {error}") from error
        raise
