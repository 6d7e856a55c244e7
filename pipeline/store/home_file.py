"""A file of the data directory, next to the workspaces, that is opened for each transaction because few are run."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from sqlite3 import Connection

from sqlite_utils import Migrations

from config.modes import close_place
from pipeline.errors import StoreBusy
from pipeline.store import driver
from pipeline.store.database import HomeTables
from pipeline.store.driver import as_sqlite3, sqlite_errors
from pipeline.store.failures import failure_of
from pipeline.store.migrations import make_ready


class HomeFile(HomeTables):
    """The tables in one such file, which an encrypted data directory encrypts."""

    def __init__(self, file: Path, migrations: Migrations) -> None:
        self.file = file
        self._migrations = migrations

    @contextmanager
    def opened(self) -> Iterator[Connection]:
        """Run one transaction; roll back on any error."""
        is_new = not self.file.exists()
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with closing(driver.connect(self.file, "rwc", timeout_s=10)) as connection:
                if is_new:
                    close_place(self.file)
                make_ready(connection, self.file, self._migrations)
                connection.execute("PRAGMA secure_delete=ON")
                connection.execute("BEGIN IMMEDIATE")
                # What is not committed is undone when it is closed.
                yield connection
                connection.execute("COMMIT")
        except sqlite_errors(sqlite3.DatabaseError) as error:
            raise failure_of(error, self.file) or as_sqlite3(error) from error

    def checkpoint(self) -> None:
        """Move the write-ahead log into the file and empty it; raise StoreBusy when a reader is in the way."""
        with closing(driver.connect(self.file, timeout_s=10)) as connection:
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise StoreBusy(f"a reader keeps the write-ahead log of {self.file} from being emptied")

    def close(self) -> None:
        """Do nothing: the file is open for no longer than a transaction."""
