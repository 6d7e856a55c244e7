"""The people of a data directory in a file next to its workspaces, created with the first person.

A data directory with one user has no such file, and the owner's requests never open it.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from sqlite_utils import Database, Migrations

from config.file_modes import make_private
from config.paths import SNAPSHOTS, file_identity
from pipeline.store import access_log, backup, driver
from pipeline.store.driver import as_sqlite3, sqlite_errors
from pipeline.store.failures import failure_of
from pipeline.store.migrations import make_ready
from pipeline.store.people import PeopleTables, remove
from pipeline.store.scripts import run_script

MIGRATIONS = Migrations("reverie-people")
# Tables that change with every request.
_PASSING = frozenset({"access", "sqlite_sequence"})


@MIGRATIONS()
def s001_schema(db: Database) -> None:
    """Create every table."""
    run_script(db.conn, "people.sql")


class PeopleFile(PeopleTables):
    """A connection to the file, for one thread at a time."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._db: Connection | None = None
        self._identity: tuple[int, int] | None = None

    def has_any(self) -> bool:
        """Return whether a person was ever added."""
        return file_identity(self._file) is not None

    @contextmanager
    def reading(self) -> Iterator[Connection | None]:
        """Yield the connection, None if no person was ever added; raise StoreUnavailable if it cannot be used."""
        with self._lock, self._typed_errors():
            yield self._connection() if self.has_any() else None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield the connection within a transaction; raise StoreUnavailable if it cannot be used."""
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
        # The file may be replaced while we run, for example by a restored copy.
        if self._db is None or self._identity != file_identity(self._file):
            self._let_go()
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            db = driver.connect(self._file, "rwc", is_shared=True)
            try:
                make_private(self._file)
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


def find_copies(file: Path) -> Path:
    """Return the folder with copies of a people file."""
    return file.with_name(SNAPSHOTS)


def read_state(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return everything worth a copy, by table: without access log and last uses."""
    with backup.typed_errors(file), closing(driver.connect(file)) as db:
        db.execute("BEGIN")
        schema = db.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        tables = [name for name, sql in schema if str(sql).startswith("CREATE TABLE") and name not in _PASSING]
        return {"": schema, **{name: _read_rows(db, name) for name in tables}}


def _read_rows(db: Connection, table: str) -> list[tuple[Any, ...]]:
    columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")') if row[1] != "last_used_at"]
    named = ", ".join(f'"{column}"' for column in columns)
    return db.execute(f'SELECT {named} FROM "{table}" ORDER BY 1, 2').fetchall()  # noqa: S608 - names of the file's own tables


def count_people(file: Path) -> int:
    """Count the people in a file who were not removed."""
    with backup.typed_errors(file), closing(driver.connect(file)) as db:
        return int(db.execute("SELECT count(*) FROM person WHERE removed_at IS NULL").fetchone()[0])


def forget_accesses(file: Path) -> None:
    """Delete the access log from a copy: copies are kept for longer than the log."""
    with backup.typed_errors(file), closing(driver.connect(file)) as db:
        db.execute("PRAGMA secure_delete=ON")
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'access'").fetchone():
            db.execute("DELETE FROM access")
            db.execute("VACUUM")


def carry_revocations(source: Path, target: Path) -> None:
    """Carry removals, sign-outs and revocations into a copy, so that restoring it does not undo them.

    This includes people and tokens that the copy does not contain: an older copy must not undo later revocations.
    """
    with _both(source, target) as (here, there):
        for person in here.execute(
            "SELECT id, name, added_at, removed_at, signed_out_at FROM person WHERE removed_at IS NOT NULL "
            "OR signed_out_at IS NOT NULL OR id IN (SELECT person FROM token WHERE revoked_at IS NOT NULL)"
        ):
            _carry_person(there, *person)
        columns = "id, person, device, hash, created_at, expires_at, last_used_at, revoked_at"
        there.executemany(
            f"INSERT INTO token ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "  # noqa: S608 - constant text
            "ON CONFLICT (id) DO UPDATE SET revoked_at = excluded.revoked_at",
            here.execute(f"SELECT {columns} FROM token WHERE revoked_at IS NOT NULL"),  # noqa: S608
        )


def _carry_person(
    db: Connection, person_id: str, name: str, added_at: str, removed_at: str | None, signed_out_at: str | None
) -> None:
    db.execute(
        "INSERT INTO person (id, name, is_admin, added_at) VALUES (?, ?, 0, ?) ON CONFLICT (id) DO NOTHING",
        (person_id, name, added_at),
    )
    if signed_out_at is not None:
        db.execute(
            "UPDATE person SET signed_out_at = max(coalesce(signed_out_at, ''), ?) WHERE id = ?",
            (signed_out_at, person_id),
        )
    if removed_at is not None:
        remove(db, person_id, removed_at)


def carry_accesses(source: Path, target: Path) -> None:
    """Carry the access log into a copy that replaces the file: later requests must stay on record."""
    with _both(source, target) as (here, there):
        access_log.copy(here, there)


@contextmanager
def _both(source: Path, target: Path) -> Iterator[tuple[Connection, Connection]]:
    with backup.typed_errors(source), closing(driver.connect(source)) as here, closing(driver.connect(target)) as there:
        there.execute("BEGIN IMMEDIATE")
        yield here, there
        there.execute("COMMIT")
