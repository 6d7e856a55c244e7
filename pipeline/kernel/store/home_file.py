"""The tables of a data directory outside of workspaces: `home.sqlite`, created with its first write."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache
from pathlib import Path
from sqlite3 import Connection
from typing import Literal

import sqlite_utils
from filelock import FileLock, Timeout

from config.operating_system import make_folder
from config.paths import find_store_key
from config.steps import reached
from pipeline.kernel.errors import StoreBusy, StoreUnavailable
from pipeline.kernel.store.database import HomeTables, WriterProfile
from pipeline.kernel.store.development_data import import_home_file, list_home_files
from pipeline.kernel.store.encryption import erase
from pipeline.kernel.store.scripts import run_script
from pipeline.kernel.store.sqlite import SqliteFile

MIGRATIONS = sqlite_utils.Migrations("reverie-home")
CHECKPOINT_PAGES = 1000
# What to do if the file is damaged.
REMEDY = (
    "`reverie store snapshot restore --people latest` moves it away and restores people; without people, move it away. "
    "Machines that sync join again"
)


@MIGRATIONS()
def s001_schema(db: sqlite_utils.Database) -> None:
    """Create every table."""
    run_script(db.conn, "home.sql")


class _OpenFile(SqliteFile):
    _remedy = REMEDY


class HomeFile(HomeTables):
    """The file, which may be created, replaced or deleted while it is in use.

    Commits of the journal need not survive a power cut: they are `NORMAL` (see `WriterProfile`).
    """

    def __init__(self, file: Path, synchronous: Literal["FULL", "NORMAL"] = "FULL") -> None:
        self._file = file
        self._profile = WriterProfile(synchronous, CHECKPOINT_PAGES)
        self._lock = threading.Lock()
        self._opened: _OpenFile | None = None

    @property
    def is_encrypted(self) -> bool:
        """Return whether the file is encrypted, or may be."""
        try:
            return find_store_key(self._file) is not None
        except OSError:
            return True

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Run reads on one consistent snapshot, of empty tables if there is no file."""
        if self._is_missing():
            yield _make_empty()
            return
        with self._open().read() as db:
            yield db

    def write(self) -> AbstractContextManager[Connection]:
        """Run a transaction; commit on success, roll back on any error."""
        return self._open().write()

    @contextmanager
    def alone(self, patience_s: float) -> Iterator[None]:
        """Exclude other processes from the exchange; raise StoreBusy if one is running."""
        make_folder(self._file.parent)
        lock = FileLock(self._file.with_suffix(".lock"), timeout=patience_s)
        try:
            lock.acquire()
        except Timeout as error:
            raise StoreBusy("another exchange is still running") from error
        except OSError as error:
            problem = f"{lock.lock_file} cannot be locked: {error}; run `reverie doctor` to check its disk and owner"
            raise StoreUnavailable(problem) from error
        try:
            yield
        finally:
            lock.release()

    def erase_deleted_data(self) -> None:
        """Remove deleted data from the file and its log; raise StoreBusy if a reader prevents it."""
        if not self._is_missing():
            self._open().erase_deleted_data()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def _is_missing(self) -> bool:
        return not (self._file.exists() or list_home_files(self._file.parent))

    def _open(self) -> _OpenFile:
        with self._lock:
            if self._opened is None or not self._opened.is_current():
                if self._opened is not None:
                    self._opened.close()
                    self._opened = None
                opened = _OpenFile(self._file, self._profile, MIGRATIONS, create=True)
                try:
                    _import_earlier_files(opened)
                except BaseException:
                    opened.close()
                    raise
                self._opened = opened
            return self._opened


def import_earlier_files(file: Path) -> None:
    """Create the file from the files of commit d0a0c2d4, if they are there."""
    if list_home_files(file.parent):
        with closing(HomeFile(file)) as home, home.read():
            pass


def _import_earlier_files(opened: _OpenFile) -> None:
    folder = opened.file.parent
    if not list_home_files(folder):
        return
    with FileLock(opened.file.with_suffix(".opening")):
        # Another process may have imported them in the meantime.
        imported = list_home_files(folder)
        with opened.write() as db:
            for file in imported:
                import_home_file(db, file)
        # Also for a journal without `FULL`: afterwards nothing else contains the data.
        opened.sync_log()
        reached("home imported")
        for file in imported:
            erase(file)
        reached("earlier files erased")


@cache
def _make_empty() -> Connection:
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    MIGRATIONS.apply(sqlite_utils.Database(db))
    db.execute("PRAGMA query_only=ON")
    return db
