"""The schema of events.sqlite as numbered migrations, safe for several processes that open a file at once.

Pending migrations run in one transaction after a snapshot of the file: either all of them are applied, or none.
"""

import json
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
from pipeline.records import branch_tag
from pipeline.store import backup, driver, oplog, row_hashes
from pipeline.store.driver import sqlite_errors
from pipeline.store.log_start import migrate_log

MIGRATIONS = Migrations("reverie")


@MIGRATIONS()
def m001_schema(db: Database) -> None:
    """Create every table, and give this copy of the store a node id."""
    _execute(db, "schema.sql")
    db.execute("INSERT INTO meta VALUES ('node', ?)", [secrets.token_hex(4)])


@MIGRATIONS()
def m002_no_co_mentions(db: Database) -> None:
    """Drop the counts of entities that are mentioned together: readers count mentions instead."""
    db.execute("DROP TABLE IF EXISTS co_mention")


@MIGRATIONS()
def m003_said(db: Database) -> None:
    """Add turns, refusals, and expiry of memories; record whether a lesson was shown or withheld."""
    _execute(db, "said.sql")


@MIGRATIONS()
def m004_operations(db: Database) -> None:
    """Create the log of operations that other machines can apply."""
    _execute(db, "sync.sql")
    anchored = db.execute("SELECT seq, json_extract(anchor, '$.path') FROM memory WHERE json_valid(anchor)").fetchall()
    checkouts = ((find_checkout(str(Path(path).parent)), seq) for seq, path in anchored)
    db.conn.executemany("UPDATE memory SET anchor = json_set(anchor, '$.checkout', ?) WHERE seq = ?", checkouts)


@MIGRATIONS()
def m005_people(db: Database) -> None:
    """Record who wrote a memory, whether it was shared, and who changed it."""
    _execute(db, "people.sql")


@MIGRATIONS()
def m006_log_from_sync_on(db: Database) -> None:
    """Keep the operation log only in a store that has exchanged with another machine."""
    migrate_log(db.conn)


@MIGRATIONS()
def m007_row_hashes(db: Database) -> None:
    """Add a hash of each memory's row."""
    db.execute("ALTER TABLE memory ADD COLUMN row_hash TEXT")
    row_hashes.update(db.conn, [seq for (seq,) in db.execute("SELECT seq FROM memory ORDER BY seq")])


@MIGRATIONS()
def m008_index_all_fields(db: Database) -> None:
    """Index memories again whose fields, tags, metadata or file were not searchable."""
    _execute(db, "index_all_fields.sql")


@MIGRATIONS()
def m009_archive(db: Database) -> None:
    """Add the session archive: agents and branches of sessions, failed calls, and conclusions."""
    _execute(db, "archive.sql")


@MIGRATIONS()
def m010_answers_and_uses(db: Database) -> None:
    """Store the answers to predicted queries, and the questions that memories were useful for."""
    _execute(db, "answers_and_uses.sql")


@MIGRATIONS()
def m011_entity_aliases(db: Database) -> None:
    """Add other names of entities, and find the entities of all memories again by the rules of this version."""
    _execute(db, "entity_aliases.sql")


@MIGRATIONS()
def m012_vocabulary(db: Database) -> None:
    """Add the vocabulary bridges: pairs of names for one thing."""
    _execute(db, "vocabulary.sql")


@MIGRATIONS()
def m013_drop_indexes(db: Database) -> None:
    """Drop the index of the change log's clock, which cost every write a page, and one that no query used."""
    _execute(db, "drop_indexes.sql")


@MIGRATIONS()
def m014_events(db: Database) -> None:
    """Record what readers of events need: the kind and scope of purged memories, and the order of finished runs."""
    _execute(db, "events.sql")


@MIGRATIONS()
def m015_given_up(db: Database) -> None:
    """Give the memories of git branches to the workspace, with a tag; drop what removed features stored."""
    _execute(db, "given_up.sql")
    rows = db.execute("SELECT seq, tags, scope_id FROM memory WHERE scope_kind = 'branch'").fetchall()
    tagged = [(json.dumps([*json.loads(tags), branch_tag(name)]), seq) for seq, tags, name in rows]
    db.conn.executemany("UPDATE memory SET scope_kind = 'workspace', scope_id = '', tags = ? WHERE seq = ?", tagged)
    row_hashes.update(db.conn, [seq for _, seq in tagged])


def _execute(db: Database, name: str) -> None:
    """Execute a file of statements, separated by blank lines."""
    # Not as a script, which would commit the transaction of all migrations.
    for statement in files("pipeline.store").joinpath(name).read_text(encoding="utf-8").split("\n\n"):
        db.execute(statement)


# The content of a store that was never written to.
_FURNITURE = frozenset({"_sqlite_migrations", "meta"})
# Tables whose rows a migration deletes on purpose: no code reads them, or other rows contain what was in them.
_DROPPED = frozenset({"co_mention", "operation", "touched", "useful_term", "bridge", "audit", "transcript"})
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
    _check_not_later(schema, file, migrations)
    if schema.journal_mode == "wal" and not migrations.pending(schema):
        return
    # The busy timeout does not cover a change of the journal mode: SQLite fails at once if another process opens the
    # file.
    with FileLock(file.with_suffix(".opening")):
        connection.execute("PRAGMA journal_mode=WAL")
        # Deletions of a migration leave no trace either.
        connection.execute("PRAGMA secure_delete=ON")
        if migrations.pending(schema):
            _migrate(schema, file, migrations, snapshots)


def _check_not_later(schema: Database, file: Path, migrations: Migrations) -> None:
    """Refuse a file of a later version, which might not understand data written by this version."""
    later = _list_unknown(migrations, tuple(migration.name for migration in migrations.applied(schema)))
    if later:
        snapshot = "restore an earlier snapshot (`reverie store snapshot list`)"
        remedy = snapshot if migrations is MIGRATIONS else "move the file away"
        raise StoreUnavailable(
            f"{file} was changed by a later version of Reverie ({', '.join(later)}). Install that version "
            f"again, or {remedy}"
        )


# Asked at every opening, so cached for all stores of this version.
@cache
def _list_unknown(migrations: Migrations, applied: tuple[str, ...]) -> list[str]:
    known = {migration.name for migration in migrations.pending(Database(memory=True))}
    return sorted(set(applied) - known)


def migrate_copy(file: Path, migrations: Migrations) -> None:
    """Apply pending migrations to a copy, which needs no snapshot."""
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
    # The lock excludes writers between the snapshot, the first count and the last count.
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
            # A failing migration is tried again at every start.
            if newest is None or backup.state(newest.file) != backup.state(file):
                backup.copy(file, backup.new_file(folder, backup.Taken.BEFORE_MIGRATION, datetime.now(UTC)))
    except StoreDamaged as error:
        raise StoreUnavailable(f"{file.name} was not migrated, because its snapshot failed: {error}") from error
