"""The schema of events.sqlite as numbered migrations, safe for several processes that open a file at once.

Pending migrations run in one transaction after a snapshot of the file: either all of them are applied, or none.
"""

import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import sqlite_utils
from filelock import FileLock
from sqlite_utils import Database, Migrations

from config.steps import reached
from pipeline.kernel.errors import StoreDamaged, StoreUnavailable
from pipeline.kernel.store import backup, driver, oplog
from pipeline.kernel.store.development_data import DROPPED, import_workspace, is_development_file
from pipeline.kernel.store.driver import sqlite_errors
from pipeline.kernel.store.scripts import run_script

MIGRATIONS = Migrations("reverie")


@MIGRATIONS()
def s001_tables(db: Database) -> None:
    """Create every table, and give this copy of the store a node id."""
    run_script(db.conn, "schema.sql")
    db.execute("INSERT INTO meta VALUES ('node', ?)", [secrets.token_hex(4)])


# The content of a store that was never written to.
_FURNITURE = frozenset({"_sqlite_migrations", "meta"})
# Errors that no migration causes.
_SURROUNDINGS = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})


def make_ready(
    connection: sqlite3.Connection,
    file: Path,
    migrations: Migrations,
    *,
    snapshots: Path | None = None,
) -> None:
    """Turn on write-ahead logging and apply pending migrations, one process at a time.

    With a folder for `snapshots`, a file with data is copied there first. Raises StoreUnavailable if a migration
    fails or loses a row; the file stays unchanged.
    """
    schema = sqlite_utils.Database(connection)
    _check_version(schema, file, migrations)
    if schema.journal_mode == "wal" and not migrations.pending(schema):
        return
    # The busy timeout does not cover a change of the journal mode: SQLite fails at once if another process opens the
    # file.
    with ExitStack() as held:
        with backup.typed_errors(file):
            held.enter_context(FileLock(file.with_suffix(".opening")))
        connection.execute("PRAGMA journal_mode=WAL")
        # Deletions of a migration leave no trace either.
        connection.execute("PRAGMA secure_delete=ON")
        if migrations.pending(schema):
            _migrate(schema, file, migrations, snapshots)


def _check_version(schema: Database, file: Path, migrations: Migrations) -> None:
    """Refuse a file of a version that might not understand data written by this version."""
    applied = _list_applied(schema, migrations)
    unknown = _list_unknown(migrations, applied)
    if unknown and not is_development_file(migrations.name, applied):
        snapshot = "restore an earlier snapshot (`reverie store snapshot list`)"
        remedy = snapshot if migrations is MIGRATIONS else "move the file away"
        raise StoreUnavailable(
            f"{file} was changed by another version of Reverie ({', '.join(unknown)}). Install that version "
            f"again, or {remedy}"
        )


def _list_applied(schema: Database, migrations: Migrations) -> tuple[str, ...]:
    return tuple(migration.name for migration in migrations.applied(schema))


# Asked at every opening, so cached for all stores of this version.
@cache
def _list_unknown(migrations: Migrations, applied: tuple[str, ...]) -> list[str]:
    known = {migration.name for migration in migrations.pending(Database(memory=True))}
    return sorted(set(applied) - known)


@contextmanager
def writing_new_file(file: Path, migrations: Migrations) -> Iterator[sqlite3.Connection]:
    """Write a new store in one transaction, and check it; it becomes a single file without a log."""
    file.touch(0o600, exist_ok=False)
    with backup.typed_errors(file), closing(driver.connect(file)) as db:
        make_ready(db, file, migrations)
        # The caller syncs the complete file.
        db.execute("PRAGMA synchronous=OFF")
        db.execute("BEGIN")
        yield db
        db.execute("COMMIT")
        db.execute("PRAGMA journal_mode=DELETE")
        backup.verify(db, backup.row_counts(db))


def migrate_copy(file: Path, migrations: Migrations) -> None:
    """Apply pending migrations to a copy, which needs no snapshot."""
    with backup.typed_errors(file), closing(driver.connect(file)) as connection:
        make_ready(connection, file, migrations)


def is_migrated(file: Path, migrations: Migrations) -> bool:
    """Return whether a file has every migration."""
    with backup.typed_errors(file), closing(driver.connect(file, "ro")) as connection:
        schema = sqlite_utils.Database(connection)
        _check_version(schema, file, migrations)
        return not migrations.pending(schema)


def _migrate(
    schema: sqlite_utils.Database,
    file: Path,
    migrations: Migrations,
    snapshots: Path | None,
) -> None:
    connection = schema.conn
    # The lock excludes writers between the snapshot, the first count and the last count.
    connection.execute("BEGIN IMMEDIATE")
    try:
        before = backup.row_counts(connection)
        if snapshots is not None and any(rows for table, rows in before.items() if table not in _FURNITURE):
            _take_snapshot(file, snapshots)
            reached("snapshot before migration taken")
        is_imported = is_development_file(migrations.name, _list_applied(schema, migrations))
        if is_imported:
            import_workspace(connection)
        migrations.apply(schema)
        if schema["touched"].exists():
            oplog.record(connection)
        dropped = DROPPED if is_imported else frozenset()
        _check_nothing_lost(file, before, backup.row_counts(connection), dropped)
        connection.execute("COMMIT")
        reached("migrated")
    except sqlite_errors(sqlite3.Error) as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _SURROUNDINGS:
            raise
        raise StoreUnavailable(f"a migration of {file.name} failed and was undone: {error}") from error
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _check_nothing_lost(
    file: Path, before: Mapping[str, int], after: Mapping[str, int], dropped: frozenset[str]
) -> None:
    lost = sorted(table for table, rows in before.items() if after.get(table, 0) < rows and table not in dropped)
    if lost:
        raise StoreUnavailable(f"a migration of {file.name} would have lost rows of {', '.join(lost)}; it was undone")


def _take_snapshot(file: Path, folder: Path) -> None:
    try:
        with backup.locked(folder):
            newest = next((s for s in backup.snapshots(folder) if s.taken is backup.Taken.BEFORE_MIGRATION), None)
            # A failing migration is tried again at every start.
            if newest is None or backup.state(newest.file) != backup.state(file):
                backup.copy(file, backup.new_file(folder, backup.Taken.BEFORE_MIGRATION, datetime.now(UTC)))
    except StoreDamaged as error:
        raise StoreUnavailable(f"{file.name} was not migrated, because its snapshot failed: {error}") from error
