"""Records of transcripts that were read, and the position in each transcript; one table set for all workspaces.

Everything is stored as a hash: the tables contain no text, name or path. Of the files that hooks and
`reverie import sessions` read, they contain the agent and the reader's mark.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipeline.kernel.store.database import HomeTables
from pipeline.kernel.store.home_values import HomeValues
from pipeline.kernel.store.rows import Table

# Months of records with two names each. A copy of an older record would count again.
KEPT_RECORDS = 400_000
# The value that describes the import of sessions that is running or ran last.
_IMPORT = "import"
# The path of the row that stands for all files of an agent.
_ALL_FILES = ""
# 96 bits distinguish half a million records.
_NAME_BYTES = 12

# The fields that identify a record uniquely.
Name = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class FileMark:
    """How far a file of sessions was read; size and time of change are None until it was read to its end."""

    mark: str | None
    size: int | None = None
    modified: float | None = None

    def covers(self, size: int, modified: float) -> bool:
        """Return whether a file of this size and time was read to its end."""
        return (self.size, self.modified) == (size, modified)


NO_MARKS: Mapping[str, tuple[str, FileMark]] = {}


class Transcripts:
    """Read and write these tables."""

    def __init__(self, tables: HomeTables) -> None:
        self._tables = tables
        self._values = HomeValues(tables, "transcript_value")

    def list_file_marks(self, agent: str) -> dict[str, FileMark]:
        """Return how far the files of an agent were imported, by the hash of the path."""
        rows = self._tables.query("SELECT name, mark, size, modified FROM transcript_file WHERE agent = ?", (agent,))
        return {name: FileMark(*mark) for name, *mark in rows}

    def find_mark(self, file: str) -> str | None:
        """Return the reader's mark at the end of the last reading of a file, by the hash of its path."""
        return self._tables.find_row(str, "SELECT mark FROM transcript_file WHERE name = ?", (file,))

    def list_imported_agents(self) -> list[str]:
        """List the agents of which all sessions were imported."""
        rows = self._tables.query("SELECT agent, name FROM transcript_file WHERE mark IS NULL ORDER BY agent")
        return [agent for agent, name in rows if name == name_file(agent, _ALL_FILES)]

    def note_imported_agents(self, agents: Iterable[str]) -> None:
        """Record that all sessions of agents were imported."""
        for agent in agents:
            self.note_read((), {name_file(agent, _ALL_FILES): (agent, FileMark(None))})

    def list_known(self, names: Iterable[str]) -> set[str]:
        """Return the names of records that were read before."""
        sought = "SELECT name FROM transcript_record WHERE name IN (SELECT value FROM json_each(?))"
        return set(self._tables.list_rows(str, sought, (json.dumps(list(names)),)))

    def note_read(self, names: Iterable[str], marks: Mapping[str, tuple[str, FileMark]] = NO_MARKS) -> None:
        """Record that records were read, and how far files were read: the agent and the mark by the hash of a path."""
        with self._tables.write() as db:
            # In the same order everywhere: two servers that add the same names wait for each other without a deadlock.
            db.execute(
                "INSERT INTO transcript_record (name) SELECT value FROM json_each(?) WHERE true ORDER BY value "
                "ON CONFLICT (name) DO NOTHING",
                (json.dumps(list(names)),),
            )
            db.execute(
                "DELETE FROM transcript_record WHERE seq <= (SELECT max(seq) FROM transcript_record) - ?",
                (KEPT_RECORDS,),
            )
            db.executemany(
                "INSERT INTO transcript_file VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE "
                "SET mark = excluded.mark, size = excluded.size, modified = excluded.modified",
                [(name, agent, mark.mark, mark.size, mark.modified) for name, (agent, mark) in marks.items()],
            )

    def get_import_progress(self) -> str | None:
        """Return the description of the last import, None if there was none."""
        return self._values.get(_IMPORT)

    def put_import_progress(self, value: str) -> None:
        """Record the progress of an import."""
        self._values.put(_IMPORT, value)


def name_file(agent: str, path: str) -> str:
    """Return the name of an agent's file in these tables."""
    return hash_name((agent, path))


def hash_name(name: Name) -> str:
    """Return the hash of a name, by which these tables know it."""
    # A host may send a lone surrogate, which is not valid UTF-8.
    text = json.dumps(name).encode()
    return hashlib.blake2b(text, digest_size=_NAME_BYTES).hexdigest()


TABLES = (Table("transcript_record"), Table("transcript_file", ("name",)), Table("transcript_value", ("name",)))
