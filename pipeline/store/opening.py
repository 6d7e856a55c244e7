"""Make a SQLite file ready when several processes may open it for the first time at once."""

import sqlite3
from pathlib import Path

import sqlite_utils
from filelock import FileLock
from sqlite_utils import Migrations


def make_ready(connection: sqlite3.Connection, file: Path, migrations: Migrations) -> None:
    """Turn on write-ahead logging and apply pending migrations, one process at a time."""
    schema = sqlite_utils.Database(connection)
    if schema.journal_mode == "wal" and not migrations.pending(schema):
        return
    # The busy timeout does not cover a change of the journal mode: SQLite fails at once beside another opener.
    with FileLock(file.with_suffix(".opening")):
        connection.execute("PRAGMA journal_mode=WAL")
        migrations.apply(schema)
