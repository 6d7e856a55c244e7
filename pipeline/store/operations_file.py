"""The operations journal in a file of the data directory, which may be deleted while it is in use."""

import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlite_utils
from sqlite_utils import Migrations

from config.paths import file_identity, find_store_key
from pipeline.errors import StoreBusy, StoreDamaged
from pipeline.store import driver
from pipeline.store.backup import LOG_SUFFIXES
from pipeline.store.checkpoints import erase_deleted_data
from pipeline.store.database import HomeTables
from pipeline.store.driver import as_sqlite3, sqlite_errors
from pipeline.store.failures import failure_of
from pipeline.store.migrations import make_ready
from pipeline.store.scripts import run_script

MIGRATIONS = Migrations("operations")


@MIGRATIONS()
def s001_schema(db: sqlite_utils.Database) -> None:
    """Create every table."""
    run_script(db.conn, "operations.sql")


class OperationsFile(HomeTables):
    """A connection to the file, for one thread at a time."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None

    @property
    def is_encrypted(self) -> bool:
        """Return whether the file is encrypted, or may be."""
        try:
            return find_store_key(self._file) is not None
        except OSError:
            return True

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection to one thread at a time; raise StoreUnavailable if the file cannot be used."""
        with self._lock:
            try:
                yield self._connection()
            except sqlite_errors(sqlite3.Error) as error:
                known = as_sqlite3(error)
                raise failure_of(known, self._file) or known from error

    def erase_deleted_data(self) -> None:
        """Remove deleted data from the file and its log; raise StoreBusy if a reader prevents it."""
        with self.opened() as db:
            is_empty = erase_deleted_data(db)
        if not is_empty:
            raise StoreBusy(f"a reader keeps the write-ahead log of {self._file} from being emptied")

    def _connection(self) -> sqlite3.Connection:
        # The file may be deleted while we run; an open connection would write to the deleted file.
        if self._db is None or self._identity != file_identity(self._file):
            if self._db is not None:
                self._db.close()
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                self._db = self._open()
            except sqlite_errors(sqlite3.DatabaseError) as error:
                if not isinstance(failure_of(error, self._file), StoreDamaged):
                    raise
                self._begin_anew(error)
                self._db = self._open()
            self._identity = file_identity(self._file)
        return self._db

    def _open(self) -> sqlite3.Connection:
        db = driver.connect(self._file, "rwc", is_shared=True)
        try:
            make_ready(db, self._file, MIGRATIONS)
            db.execute("PRAGMA synchronous=NORMAL")
            # Overwrite deleted data, because purged texts must not remain here.
            db.execute("PRAGMA secure_delete=ON")
        except BaseException:
            db.close()
            raise
        return db

    def _begin_anew(self, error: sqlite3.Error) -> None:
        """Move a damaged journal aside and start a new one; only its entries are lost."""
        aside = find_damaged(self._file)
        self._file.replace(aside)
        for suffix in LOG_SUFFIXES:
            self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)
        print(f"{self._file} was damaged ({error}); moved it to {aside}", file=sys.stderr)  # noqa: T201 - no other log is left


def find_damaged(file: Path) -> Path:
    """Return the file of a damaged journal."""
    return file.with_suffix(".damaged")
