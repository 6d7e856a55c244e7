"""Import the files of a data directory that commit d0a0c2d4 wrote: no other data from before the first release is read.

The files have almost the tables of this version, so they are changed in place, each in the transaction that opens it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from sqlite3 import Connection
from typing import Final, NamedTuple

from pipeline.records import branch_tag
from pipeline.store import row_hashes
from pipeline.store.scripts import run_script

# The name under which `Migrations` records that a file has the tables of this version.
FIRST_SCHEMA: Final = "s001_schema"
# Tables whose rows are dropped on purpose: no code reads them, or a job finds them again.
DROPPED: Final = frozenset({"_sqlite_migrations", "audit", "bridge", "transcript", "useful_term"})


class _Kind(NamedTuple):
    """How files of one kind are recognized, by the last change that d0a0c2d4 made to their tables, and imported."""

    last_change: str
    import_rows: Callable[[Connection], None]


def is_development_file(migration_set: str, applied: Sequence[str]) -> bool:
    """Return whether d0a0c2d4 wrote a file, by the set of its migrations and the names of those that it has."""
    return bool(applied) and applied[-1] == _KINDS[migration_set].last_change if migration_set in _KINDS else False


def import_file(db: Connection, migration_set: str) -> None:
    """Give a file that d0a0c2d4 wrote the tables of this version, with its rows, within a transaction."""
    _KINDS[migration_set].import_rows(db)
    db.execute("DELETE FROM _sqlite_migrations WHERE name <> (SELECT min(name) FROM _sqlite_migrations)")
    db.execute("UPDATE _sqlite_migrations SET name = ?", (FIRST_SCHEMA,))


def _import_workspace(db: Connection) -> None:
    run_script(db, "development_workspace.sql")
    rows = db.execute("SELECT seq, tags, scope_id FROM memory WHERE scope_kind = 'branch'").fetchall()
    tagged = [(json.dumps([*json.loads(tags), branch_tag(name)]), seq) for seq, tags, name in rows]
    db.executemany("UPDATE memory SET scope_kind = 'workspace', scope_id = '', tags = ? WHERE seq = ?", tagged)
    row_hashes.update(db, [seq for _, seq in tagged])


def _import_people(db: Connection) -> None:
    run_script(db, "development_people.sql")


def _import_transcripts(db: Connection) -> None:
    db.execute("DROP TABLE transcript")
    # These marks are never replaced, and may contain what was said.
    db.execute("UPDATE transcript_file SET mark = NULL WHERE agent = 'hooks'")


def _keep_tables(db: Connection) -> None:
    """Change nothing: the tables are those of this version."""


_KINDS: Mapping[str, _Kind] = {
    "reverie": _Kind("m014_events", _import_workspace),
    "reverie-people": _Kind("q003_sign_in", _import_people),
    "reverie-transcripts": _Kind("t002_imported_files", _import_transcripts),
    "reverie-peers": _Kind("p001_peers", _keep_tables),
    "operations": _Kind("m003_hook_runs", _keep_tables),
}
