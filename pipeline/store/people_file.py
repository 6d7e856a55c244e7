"""The people of a home in a file beside its workspaces, made when the first person is added.

A home of one person has none, and nothing that its owner asks opens it.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection

from sqlite_utils import Database, Migrations

from config.modes import close_place
from config.paths import file_identity
from pipeline.store import access_log, driver
from pipeline.store.driver import as_sqlite3, sqlite_errors
from pipeline.store.failures import failure_of
from pipeline.store.migrations import make_ready
from pipeline.store.people import PeopleTables

MIGRATIONS = Migrations("reverie-people")


@MIGRATIONS()
def q001_people(db: Database) -> None:
    """Create every table."""
    # Who was removed keeps the id: nobody else may come to own what was theirs.
    db.execute(
        "CREATE TABLE person (id TEXT PRIMARY KEY, name TEXT NOT NULL, is_admin INTEGER NOT NULL, "
        "added_at TEXT NOT NULL, removed_at TEXT)"
    )
    db.execute(
        "CREATE TABLE token (id TEXT PRIMARY KEY, person TEXT NOT NULL REFERENCES person (id), device TEXT NOT NULL, "
        "hash TEXT NOT NULL UNIQUE, created_at TEXT NOT NULL, expires_at TEXT, last_used_at TEXT, revoked_at TEXT)"
    )
    db.execute("CREATE INDEX token_person ON token (person)")
    # `grant` alone is a word of SQL.
    db.execute(
        "CREATE TABLE workspace_grant (person TEXT NOT NULL REFERENCES person (id), workspace TEXT NOT NULL, "
        "role TEXT NOT NULL, PRIMARY KEY (person, workspace))"
    )


@MIGRATIONS()
def q002_access_log(db: Database) -> None:
    """Keep what people ask."""
    db.execute(access_log.CREATE)
    db.execute("CREATE INDEX access_at ON access (at)")
    db.execute("CREATE INDEX access_person ON access (person, seq)")
    db.execute("CREATE INDEX access_workspace ON access (workspace, seq)")


@MIGRATIONS()
def q003_sign_in(db: Database) -> None:
    """Keep what a provider knows people by, and when their browsers were signed out."""
    db.execute("ALTER TABLE person ADD COLUMN email TEXT")
    db.execute("ALTER TABLE person ADD COLUMN signed_out_at TEXT")
    db.execute("CREATE UNIQUE INDEX person_email ON person (email) WHERE removed_at IS NULL AND email IS NOT NULL")


class PeopleFile(PeopleTables):
    """One connection to the file, for one thread at a time."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._db: Connection | None = None
        self._identity: tuple[int, int] | None = None

    def has_any(self) -> bool:
        """Tell whether anybody was ever added."""
        return file_identity(self._file) is not None

    @contextmanager
    def reading(self) -> Iterator[Connection | None]:
        """Yield the connection, None where nobody was ever added; raise StoreUnavailable where it cannot be used."""
        with self._lock, self._typed_errors():
            yield self._connection() if self.has_any() else None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield the connection within a transaction; raise StoreUnavailable where it cannot be used."""
        with self._lock, self._typed_errors():
            db = self._connection()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._let_go()

    @contextmanager
    def _typed_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite_errors(sqlite3.DatabaseError) as error:
            raise failure_of(error, self._file) or as_sqlite3(error) from error

    def _connection(self) -> Connection:
        # The file may be replaced while we run, as by a restored copy.
        if self._db is None or self._identity != file_identity(self._file):
            self._let_go()
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            db = driver.connect(self._file, "rwc", is_shared=True)
            try:
                close_place(self._file)
                make_ready(db, self._file, MIGRATIONS)
            except BaseException:
                db.close()
                raise
            self._db, self._identity = db, file_identity(self._file)
        return self._db

    def _let_go(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None
