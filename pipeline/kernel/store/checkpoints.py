"""Move the write-ahead log of a store into its main file, so that a copy of this file is complete.

SQLite does it when the last process closes the store. A process that is killed, or that exits while another one has
the store open, leaves the log.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from config.paths import HomePaths
from pipeline.kernel.errors import ReverieError, StoreUnavailable
from pipeline.kernel.store import driver
from pipeline.kernel.store.driver import as_sqlite3, failure_of, sqlite_errors

# Other connections wait at most this long for the last step.
PATIENCE_MS = 100


def empty_log(connection: sqlite3.Connection) -> bool:
    """Checkpoint a store and truncate its log, unless other connections use it; return whether the log is empty.

    The connection's busy timeout is changed.
    """
    connection.execute(f"PRAGMA busy_timeout={PATIENCE_MS}")
    # The first step blocks no other connection. It leaves little to do for the second, during which no other can write.
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]


def erase_deleted_data(connection: sqlite3.Connection) -> bool:
    """Rewrite a store and empty its log, so that neither contains deleted data; return whether the log is empty.

    `secure_delete` overwrites the rows that are deleted, but not the copies that SQLite left in the free space of a
    page when it moved a row to another page.
    """
    connection.execute("VACUUM")
    return not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]


def has_log(file: Path) -> bool:
    """Return whether a store has a write-ahead log with content."""
    try:
        return file.with_name(f"{file.name}-wal").stat().st_size > 0
    except OSError:
        return False


def complete_files(paths: HomePaths) -> Iterator[tuple[Path, Exception]]:
    """Complete the main file of every store of a data directory; yield each file that cannot be completed, and why.

    Only for processes that have none of the stores open.
    """
    stores = (paths.workspace(name).events for name in paths.workspace_ids())
    for file in (*stores, paths.home):
        if has_log(file):
            try:
                _complete(file)
            except ReverieError as error:
                yield file, error


def _complete(file: Path) -> None:
    try:
        with closing(driver.connect(file, timeout_s=PATIENCE_MS / 1000)) as connection:
            connection.execute("PRAGMA secure_delete=ON")
            is_empty = empty_log(connection)
    except sqlite_errors(sqlite3.Error) as error:
        raise failure_of(error, file) or StoreUnavailable(str(as_sqlite3(error))) from error
    if not is_empty:
        raise StoreUnavailable("another process uses it")
