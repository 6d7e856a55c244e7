"""A SQLite file of the data directory, outside of workspaces, opened per transaction because transactions are rare."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from sqlite3 import Connection

from sqlite_utils import Migrations

from config.file_modes import make_private
from config.paths import file_identity
from pipeline.errors import StoreBusy
from pipeline.store import driver
from pipeline.store.checkpoints import erase_deleted_data
from pipeline.store.database import HomeTables
from pipeline.store.driver import as_sqlite3, sqlite_errors
from pipeline.store.failures import failure_of
from pipeline.store.migrations import make_ready


class HomeFile(HomeTables):
    """The tables in such a file, encrypted in an encrypted data directory."""

    def __init__(self, file: Path, migrations: Migrations) -> None:
        self.file = file
        self._migrations = migrations
        # The identity of the file whose tables were checked last; a file that replaces it is checked, too.
        self._ready: tuple[int, int] | None = None

    @contextmanager
    def opened(self) -> Iterator[Connection]:
        """Run a transaction; roll back on any error."""
        identity = file_identity(self.file)
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with closing(driver.connect(self.file, "rwc", timeout_s=10)) as connection:
                if identity is None:
                    make_private(self.file)
                if identity is None or identity != self._ready:
                    make_ready(connection, self.file, self._migrations)
                    self._ready = file_identity(self.file)
                connection.execute("PRAGMA secure_delete=ON")
                connection.execute("BEGIN IMMEDIATE")
                # Closing undoes uncommitted changes.
                yield connection
                connection.execute("COMMIT")
        except sqlite_errors(sqlite3.DatabaseError) as error:
            raise failure_of(error, self.file) or as_sqlite3(error) from error

    def erase_deleted_data(self) -> None:
        """Remove deleted data from the file and its log; raise StoreBusy if a reader prevents it."""
        with closing(driver.connect(self.file, timeout_s=10)) as connection:
            is_empty = erase_deleted_data(connection)
        if not is_empty:
            raise StoreBusy(f"a reader keeps the write-ahead log of {self.file} from being emptied")

    def close(self) -> None:
        """Do nothing: the file is only open during a transaction."""
