"""The schema of events.sqlite as numbered migrations, and making a file ready that several processes may open at once.

Pending migrations run in one transaction, on a file of which a snapshot was taken: all of them happen, or none.
"""

import secrets
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path

import sqlite_utils
from filelock import FileLock
from sqlite_utils import Database, Migrations

from pipeline.anchors import find_checkout
from pipeline.errors import StoreDamaged, StoreUnavailable
from pipeline.store import backup, driver, oplog
from pipeline.store.driver import sqlite_errors

MIGRATIONS = Migrations("reverie")


@MIGRATIONS()
def m001_schema(db: Database) -> None:
    """Create every table, and give this copy of the store its name among others."""
    _execute(db, "schema.sql")
    db.execute("INSERT INTO meta VALUES ('node', ?)", [secrets.token_hex(4)])


@MIGRATIONS()
def m002_no_co_mentions(db: Database) -> None:
    """Drop the counts of entities that are mentioned together: what needs them counts mentions."""
    db.execute("DROP TABLE IF EXISTS co_mention")


@MIGRATIONS()
def m003_said(db: Database) -> None:
    """Keep what was said, what people refused, and what ends; tell whether a lesson was shown or withheld."""
    _execute(db, "said.sql")


@MIGRATIONS()
def m004_operations(db: Database) -> None:
    """Log every change of the truth as an operation that other machines can apply, beginning with what is there."""
    _execute(db, "sync.sql")
    anchored = db.execute("SELECT seq, json_extract(anchor, '$.path') FROM memory WHERE json_valid(anchor)").fetchall()
    found = ((find_checkout(str(Path(path).parent)), seq) for seq, path in anchored)
    db.conn.executemany("UPDATE memory SET anchor = json_set(anchor, '$.checkout', ?) WHERE seq = ?", found)
    oplog.record(db.conn)


@MIGRATIONS()
def m005_people(db: Database) -> None:
    """Say of a memory who wrote it, whether it was shared, and who changed it."""
    _execute(db, "people.sql")


def _execute(db: Database, name: str) -> None:
    """Execute a file of statements, one a paragraph."""
    # Not as a script, which would commit the transaction that all migrations share.
    for statement in files("pipeline.store").joinpath(name).read_text(encoding="utf-8").split("\n\n"):
        db.execute(statement)


# What a store has that nobody has written to.
_FURNITURE = frozenset({"_sqlite_migrations", "meta"})
# Counts that a migration drops on purpose: everything in them was told by other rows.
_DROPPED = frozenset({"co_mention"})
# What no migration is to blame for.
_SURROUNDINGS = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})


def make_ready(
    connection: sqlite3.Connection,
    file: Path,
    migrations: Migrations,
    *,
    snapshots: Path | None = None,
) -> None:
    """Turn on write-ahead logging and apply pending migrations, one process at a time.

    With a folder for `snapshots`, a file that holds anything is copied there first. Raises StoreUnavailable when a
    migration fails or loses a row; the file is then as it was.
    """
    schema = sqlite_utils.Database(connection)
    _check_not_later(schema, file, migrations)
    if schema.journal_mode == "wal" and not migrations.pending(schema):
        return
    # The busy timeout does not cover a change of the journal mode: SQLite fails at once beside another opener.
    with FileLock(file.with_suffix(".opening")):
        connection.execute("PRAGMA journal_mode=WAL")
        # What a migration deletes leaves no trace either.
        connection.execute("PRAGMA secure_delete=ON")
        if migrations.pending(schema):
            _migrate(schema, file, migrations, snapshots)


def _check_not_later(schema: Database, file: Path, migrations: Migrations) -> None:
    """Refuse a file that a later version has changed: that one might not understand what this one writes."""
    later = _list_unknown(migrations, tuple(one.name for one in migrations.applied(schema)))
    if later:
        raise StoreUnavailable(
            f"{file} was changed by a later version of Reverie ({', '.join(later)}): install that one again, or put "
            "back the snapshot from before (`reverie snapshot list`)"
        )


# Of all stores but those of another version the same is asked, at every opening.
@cache
def _list_unknown(migrations: Migrations, applied: tuple[str, ...]) -> list[str]:
    known = {one.name for one in migrations.pending(Database(memory=True))}
    return sorted(set(applied) - known)


def migrate_copy(file: Path, migrations: Migrations) -> None:
    """Apply pending migrations to a copy, which needs no snapshot of its own."""
    with closing(driver.connect(file)) as connection:
        make_ready(connection, file, migrations)


def is_migrated(file: Path, migrations: Migrations) -> bool:
    """Return whether a file has every migration."""
    with closing(driver.connect(file, "ro")) as connection:
        schema = sqlite_utils.Database(connection)
        _check_not_later(schema, file, migrations)
        return not migrations.pending(schema)


def _migrate(
    schema: sqlite_utils.Database,
    file: Path,
    migrations: Migrations,
    snapshots: Path | None,
) -> None:
    connection = schema.conn
    # Nobody writes between the snapshot, the first count and the last one.
    connection.execute("BEGIN IMMEDIATE")
    try:
        before = backup.row_counts(connection)
        if snapshots is not None and any(rows for table, rows in before.items() if table not in _FURNITURE):
            _take_snapshot(file, snapshots)
        migrations.apply(schema)
        if schema["touched"].exists():
            oplog.record(connection)
        _check_nothing_lost(file, before, backup.row_counts(connection))
        connection.execute("COMMIT")
    except sqlite_errors(sqlite3.Error) as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _SURROUNDINGS:
            raise
        raise StoreUnavailable(f"a migration of {file.name} failed and was undone: {error}") from error
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _check_nothing_lost(file: Path, before: Mapping[str, int], after: Mapping[str, int]) -> None:
    lost = sorted(table for table, rows in before.items() if after.get(table, 0) < rows and table not in _DROPPED)
    if lost:
        raise StoreUnavailable(f"a migration of {file.name} would have lost rows of {', '.join(lost)}; it was undone")


def _take_snapshot(file: Path, folder: Path) -> None:
    try:
        with backup.locked(folder):
            newest = next((s for s in backup.snapshots(folder) if s.taken is backup.Taken.BEFORE_MIGRATION), None)
            # A migration that fails is tried again at every start.
            if newest is None or backup.state(newest.file) != backup.state(file):
                backup.copy(file, backup.new_file(folder, backup.Taken.BEFORE_MIGRATION, datetime.now(UTC)))
    except StoreDamaged as error:
        raise StoreUnavailable(f"{file.name} is not migrated, since no sound copy can be made: {error}") from error
