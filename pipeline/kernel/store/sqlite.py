"""SQLite files of the store: one writer at a time, concurrent readers, typed errors."""

import contextlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, cast

from sqlite_utils import Migrations

from config.file_modes import make_private
from config.operating_system import make_folder, sync_to_disk
from config.paths import FileState, HomePaths, WorkspacePaths, file_identity, file_state
from pipeline.kernel.errors import NO_WORKSPACE, NotFound, ReverieError, StoreBusy, StoreDamaged, StoreUnavailable
from pipeline.kernel.lru import LruCache
from pipeline.kernel.store import driver, oplog, row_hashes
from pipeline.kernel.store.backup import check_not_lost, typed_errors
from pipeline.kernel.store.checkpoints import PATIENCE_MS, empty_log, erase_deleted_data, has_log
from pipeline.kernel.store.database import (
    Database,
    Databases,
    StoreState,
    WakeUps,
    WriteConnection,
    WriterProfile,
    wake_no_worker,
)
from pipeline.kernel.store.driver import as_sqlite3, failure_of, sqlite_errors
from pipeline.kernel.store.log_start import install_triggers, never_synced, start_log
from pipeline.kernel.store.migrations import MIGRATIONS, make_ready
from pipeline.kernel.store.pool import ConnectionPool

# Each connection has its own cache; other pages are still in the system's cache.
CACHE_KIB = 2000
# A log that was larger is cut to this when it starts again.
MOST_LOG_BYTES = 16 * 2**20
# An idle workspace has no open file: this small cache saves checking its schema again.
MOST_DATABASES = 1024
NO_FILE: FileState = (0, 0, 0)


class SqliteFile:
    """A file of the store for reading from any thread and writing from one thread at a time.

    Its connections are opened on demand and pooled. An existing file is copied to `snapshots` before a migration.
    """

    # Follows the error if the file is damaged.
    _remedy = "`reverie store snapshot list` shows the copies to restore"

    def __init__(
        self,
        file: Path,
        profile: WriterProfile,
        migrations: Migrations,
        *,
        create: bool,
        snapshots: Path | None = None,
        pool: ConnectionPool | None = None,
    ) -> None:
        is_new = create and not file.exists()
        if create:
            make_folder(file.parent)
        elif not file.is_file():
            raise NotFound(NO_WORKSPACE)
        self._file = file
        self._profile = profile
        self._pool = ConnectionPool() if pool is None else pool
        self._is_closed = False
        self._lock = threading.Lock()
        self._local = threading.local()
        with self._typed_errors():
            writer = self._connect("rwc" if create else "rw", writes=True)
            try:
                if is_new:
                    make_private(file)
                make_ready(writer, file, migrations, snapshots=snapshots)
                self._set_up_writer(writer)
                self.identity = self._find_identity()
            except BaseException:
                writer.close()
                raise
        self._give_back(writer)

    @property
    def file(self) -> Path:
        """Return the store's file."""
        return self._file

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Run an immediate transaction; commit on success, roll back on any error."""
        if not self._lock.acquire(timeout=self._profile.busy_timeout_ms / 1000):
            raise StoreBusy("another write uses the store")
        try:
            with self._taken(writes=True) as writer:
                writer.execute("BEGIN IMMEDIATE")
                yield writer
                writer.execute("COMMIT")
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Run reads on one consistent snapshot; nested reads share the outer snapshot."""
        outer: sqlite3.Connection | None = getattr(self._local, "reader", None)
        if outer is not None:
            yield outer
            return
        with self._taken(writes=False) as reader:
            self._local.reader = reader
            try:
                reader.execute("BEGIN")
                yield reader
            finally:
                self._local.reader = None

    def erase_deleted_data(self) -> None:
        """Remove deleted data from the file and its log; raise StoreBusy if a reader prevents it."""
        with self._lock, self._taken(writes=True) as writer:
            is_empty = erase_deleted_data(writer)
        if not is_empty:
            raise StoreBusy("a reader keeps the write-ahead log from being emptied")
        # SQLite does not sync the truncation, and the log contained the deleted data.
        self.sync_log()

    def sync_log(self) -> None:
        """Make all commits durable, also those of workers, before another store relies on them."""
        for path in (self._file.with_name(f"{self._file.name}-wal"), self._file.parent):
            with typed_errors(self._file), contextlib.suppress(FileNotFoundError):
                sync_to_disk(path)

    def complete_file(self) -> bool:
        """Move the log into the file if no other connection has to wait for it; return whether the log is empty."""
        if not self._lock.acquire(timeout=PATIENCE_MS / 1000):
            return False
        try:
            with self._taken(writes=True) as writer:
                try:
                    return empty_log(writer)
                finally:
                    writer.execute(f"PRAGMA busy_timeout={self._profile.busy_timeout_ms}")
        finally:
            self._lock.release()

    def measure(self) -> int:
        """Return the size of the file and its logs in bytes."""
        return sum(piece.stat().st_size for piece in self._file.parent.glob(f"{self._file.name}*"))

    def close(self) -> None:
        """Complete the file and close every connection; connections in use are closed afterwards."""
        # A process that never checkpoints, such as the scheduler, leaves the file unchanged.
        if self._profile.checkpoint_pages and has_log(self._file):
            # The log stays valid: the next process that opens the store reads it.
            with contextlib.suppress(ReverieError, sqlite3.Error):
                self.complete_file()
        self._is_closed = True
        self._pool.close(self)

    @contextlib.contextmanager
    def _taken(self, *, writes: bool) -> Iterator[sqlite3.Connection]:
        """Yield a connection for a while; roll back an open transaction."""
        with self._typed_errors():
            connection = self._pool.take(self, writes=writes) or self._open(writes=writes)
            try:
                yield connection
            finally:
                try:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                finally:
                    self._give_back(connection)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        # A connection that could not end its transaction is useless.
        if self._is_closed or connection.in_transaction:
            connection.close()
        else:
            self._pool.give(self, connection)

    def _open(self, *, writes: bool) -> sqlite3.Connection:
        """Open a connection to the file that this database was opened on, not to a replacement with the same name."""
        if self._find_identity() != self.identity:
            raise StoreUnavailable("the store was replaced while it was in use")
        connection = self._connect("rw", writes=writes)
        if writes:
            self._set_up_writer(connection)
        else:
            connection.execute("PRAGMA query_only=ON")
        return connection

    def _find_identity(self) -> tuple[int, int]:
        identity = file_identity(self._file)
        if identity is None:
            raise NotFound(NO_WORKSPACE)
        return identity

    def _connect(self, mode: Literal["rw", "rwc"], *, writes: bool) -> sqlite3.Connection:
        timeout_s = self._profile.busy_timeout_ms / 1000
        connection = driver.connect(
            self._file, mode, writes=writes, timeout_s=timeout_s, is_shared=True, cached_statements=256
        )
        connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        return connection

    def _set_up_writer(self, writer: sqlite3.Connection) -> None:
        for pragma in (
            f"synchronous={self._profile.synchronous}",
            f"wal_autocheckpoint={self._profile.checkpoint_pages}",
            f"journal_size_limit={MOST_LOG_BYTES}",
            "secure_delete=ON",
        ):
            writer.execute(f"PRAGMA {pragma}")

    def is_current(self) -> bool:
        """Return whether the file still exists, and no other file has taken its name."""
        try:
            status = os.stat(self._file)  # noqa: PTH116 - before every request; Path.stat costs twice as much
        except FileNotFoundError:
            return False
        return (status.st_dev, status.st_ino) == self.identity and status.st_size > 0

    @contextlib.contextmanager
    def _typed_errors(self) -> Iterator[None]:
        file = self._file
        try:
            yield
        except ValueError as error:
            # Requests are validated before: only a stored text can be no UTF-8, no JSON or no member of an enumeration.
            if not (isinstance(error, UnicodeDecodeError | json.JSONDecodeError) or "is not a valid" in str(error)):
                raise
            raise StoreDamaged(f"{file} contains a text that no version of Reverie writes; {self._remedy}") from error
        except sqlite_errors(sqlite3.DatabaseError) as error:
            known = as_sqlite3(error)
            failure = None if isinstance(known, sqlite3.IntegrityError) else failure_of(known, file)
            if failure is None:
                if known is error:
                    raise
                # Other packages do not import SQLCipher.
                raise known from error
            if isinstance(failure, StoreDamaged):
                raise StoreDamaged(f"{failure}; {self._remedy}") from error
            raise failure from error


class SqliteDatabase(SqliteFile, Database):
    """An events.sqlite. After each commit that queued work, `on_commit` is called with it, outside of every lock."""

    def __init__(
        self,
        file: Path,
        profile: WriterProfile,
        *,
        create: bool,
        on_commit: Callable[[WakeUps], None] = wake_no_worker,
        pool: ConnectionPool | None = None,
    ) -> None:
        check_not_lost(file)
        self._on_commit = on_commit
        snapshots = WorkspacePaths(file.parent).snapshots
        super().__init__(file, profile, MIGRATIONS, create=create, snapshots=snapshots, pool=pool)

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Run an immediate transaction; commit on success, roll back on any error."""
        with super().write() as connection:
            writer = cast("WriteConnection", connection)
            oplog.ignore_outside_changes(writer)
            wake_ups = writer.wake_ups = set()
            writer.changed_rows = set()
            yield writer
            row_hashes.update_changed(writer)
            oplog.record(writer)
        if wake_ups:
            self._on_commit(wake_ups)

    def install_log_triggers(self, db: sqlite3.Connection) -> None:
        """Have each transaction note which records it changes, for the operation log."""
        install_triggers(db)


class SqliteDatabases(Databases):
    """Provide each workspace's database, and a new one if its file was replaced.

    `on_commit` is called with a workspace and the work that a commit queued. A store that is created keeps an operation
    log from its first write if `is_synced` returns true.
    """

    def __init__(
        self,
        paths: HomePaths,
        profile: WriterProfile,
        on_commit: Callable[[str, WakeUps], None] = wake_no_worker,
        is_synced: Callable[[], bool] = never_synced,
    ) -> None:
        self._paths = paths
        self._profile = profile
        self._on_commit = on_commit
        self._is_synced = is_synced
        self._pool = ConnectionPool()
        self._known: LruCache[str, SqliteDatabase] = LruCache(MOST_DATABASES)

    def get(self, workspace_id: str, *, create: bool = False) -> SqliteDatabase:
        """Return a workspace's database; raise NotFound if it does not exist and `create` is not set."""
        return self._known.get(
            workspace_id, SqliteDatabase.is_current, partial(self._open, workspace_id, create=create)
        )

    def _open(self, workspace_id: str, *, create: bool) -> SqliteDatabase:
        file, on_commit = self._paths.workspace(workspace_id).events, partial(self._on_commit, workspace_id)
        is_new = create and not file.exists()
        database = SqliteDatabase(file, self._profile, create=create, on_commit=on_commit, pool=self._pool)
        if is_new and self._is_synced():
            start_log(database)
        return database

    def ids(self) -> list[str]:
        """List the existing workspaces by name."""
        return self._paths.workspace_ids()

    def exists(self, workspace_id: str) -> bool:
        """Return whether a workspace exists."""
        paths = self._paths.workspace(workspace_id)
        # Before every request: pathlib costs twice as much.
        return os.path.isfile(paths.events) or paths.lost_store is not None  # noqa: PTH113

    def states(self) -> Mapping[str, StoreState]:
        """Return a value per workspace that changes with every write, without opening stores."""
        # Called at every tick of the scheduler: joining paths would take longer than the check.
        folder = str(self._paths.workspaces)
        return {name: _state_of(f"{folder}/{name}/events.sqlite") for name in self.ids()}

    def close(self) -> None:
        """Close every database."""
        for database in self._known.values():
            database.close()


def _state_of(events: str) -> StoreState:
    log = find_file_state(f"{events}-wal")
    # Opening a store creates an empty log, and the last process to close it deletes the log.
    return find_file_state(events), log if log[2] else NO_FILE


def find_file_state(file: str) -> FileState:
    """Return the state of a file or folder, zeros if it does not exist."""
    try:
        return file_state(file)
    except FileNotFoundError:
        return NO_FILE
