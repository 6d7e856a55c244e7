"""Import the files of a data directory that commit d0a0c2d4 wrote: no other data from before the first release is read.

Its stores have almost the tables of this version, so they are changed in place, each in the transaction that opens it.
Its other files are `home.sqlite` now: their rows are copied, and the files erased.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection
from typing import Final

from pipeline.kernel.errors import StoreUnavailable
from pipeline.kernel.records import branch_tag
from pipeline.kernel.store import backup, driver, row_hashes
from pipeline.kernel.store.copying import SqliteTables
from pipeline.kernel.store.scripts import run_script

# The name under which `Migrations` records that a file has the tables of this version.
FIRST_SCHEMA: Final = "s001_tables"
# Tables whose rows are dropped on purpose: no code reads them, or a job finds them again.
DROPPED: Final = frozenset({"_sqlite_migrations", "audit", "bridge", "transcript", "useful_term"})
# The files that are `home.sqlite` now.
_HOME_FILES: Final = ("people.sqlite", "peers.sqlite", "transcripts.sqlite", "operations.sqlite")
# The last change that d0a0c2d4 made to the tables of a file, by the set of its migrations.
_LAST_CHANGES: Final[Mapping[str, str]] = {
    "reverie": "m014_events",
    "reverie-people": "q003_sign_in",
    "reverie-transcripts": "t002_imported_files",
    "reverie-peers": "p001_peers",
    "operations": "m003_hook_runs",
}


def is_development_file(migration_set: str, applied: Sequence[str]) -> bool:
    """Return whether d0a0c2d4 wrote a file, by the set of its migrations and the names of those that it has."""
    return bool(applied) and applied[-1] == _LAST_CHANGES.get(migration_set)


def import_workspace(db: Connection) -> None:
    """Give a store that d0a0c2d4 wrote the tables of this version, with its rows, within a transaction."""
    run_script(db, "development_workspace.sql")
    rows = db.execute("SELECT seq, tags, scope_id FROM memory WHERE scope_kind = 'branch'").fetchall()
    tagged = [(json.dumps([*json.loads(tags), branch_tag(name)]), seq) for seq, tags, name in rows]
    db.executemany("UPDATE memory SET scope_kind = 'workspace', scope_id = '', tags = ? WHERE seq = ?", tagged)
    row_hashes.update(db, [seq for _, seq in tagged])
    db.execute("DELETE FROM _sqlite_migrations WHERE name <> (SELECT min(name) FROM _sqlite_migrations)")
    db.execute("UPDATE _sqlite_migrations SET name = ?", (FIRST_SCHEMA,))


def list_home_files(folder: Path) -> list[Path]:
    """List the files of a data directory that have to be imported into `home.sqlite`."""
    return [file for name in _HOME_FILES if (file := folder / name).exists()]


def import_home_file(db: Connection, file: Path) -> None:
    """Copy the rows of a file of d0a0c2d4 into `home.sqlite`, within a transaction; rows that are there stay."""
    with backup.typed_errors(file), closing(driver.connect(file)) as source:
        applied = source.execute("SELECT migration_set, name FROM _sqlite_migrations ORDER BY name").fetchall()
        if not applied or not is_development_file(applied[-1][0], [name for _, name in applied]):
            raise StoreUnavailable(
                f"{file} was changed by another version of Reverie. Install that version again, or move the file away"
            )
        tables, target = SqliteTables(source), SqliteTables(db)
        for table in tables.tables:
            if table.name not in DROPPED:
                target.fill(table, tables.rows(table), conflict="IGNORE")
        target.set_counters({name: mark for name, mark in tables.marks().items() if name not in DROPPED})
    if applied[-1][0] == "reverie-people":
        run_script(db, "development_people.sql")
    # These marks are never replaced, and may contain what was said.
    db.execute("UPDATE transcript_file SET mark = NULL WHERE agent = 'hooks'")
