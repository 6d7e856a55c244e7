"""Which records of transcripts were read, and how far each transcript: once per data directory, for all workspaces.

Everything is known by its hash: no word of a session, no name and no path is in these tables.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from sqlite3 import Connection

from sqlite_utils import Database, Migrations

from pipeline.records.transcripts import TranscriptMark
from pipeline.store.database import HomeTables

# Months of records, two names each. A copy of an older record would count again.
KEPT_RECORDS = 400_000
KEPT_TRANSCRIPTS = 10_000
# 96 bits tell half a million records apart.
_NAME_BYTES = 12

MIGRATIONS = Migrations("reverie-transcripts")

# How a record is named, in words that no other record has.
Name = tuple[str | None, ...]


@MIGRATIONS()
def t001_transcripts(db: Database) -> None:
    """Create every table."""
    db.execute("CREATE TABLE transcript_record (seq INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE)")
    db.execute(
        "CREATE TABLE transcript (name TEXT PRIMARY KEY, offset_bytes INTEGER NOT NULL, digest TEXT, at TEXT NOT NULL)"
    )
    db.execute("CREATE INDEX transcript_at ON transcript (at)")


class Transcripts:
    """Read and write these tables."""

    def __init__(self, tables: HomeTables) -> None:
        self._tables = tables

    @contextmanager
    def reading(self, session_id: str) -> Iterator["TranscriptReading"]:
        """Run one transaction on a session's transcript: what a block adds is known when the block ends."""
        with self._tables.opened() as db:
            yield TranscriptReading(db, _hash((session_id,)))

    def close(self) -> None:
        """Close what they are kept in."""
        self._tables.close()


class TranscriptReading:
    """A transcript while it is read."""

    def __init__(self, db: Connection, transcript: str) -> None:
        self._db = db
        self._transcript = transcript

    @property
    def mark(self) -> TranscriptMark | None:
        """Return where the last reading stopped, None if there was none."""
        row = self._db.execute(
            "SELECT offset_bytes, digest FROM transcript WHERE name = ?", (self._transcript,)
        ).fetchone()
        return None if row is None else TranscriptMark(*row)

    def stop_at(self, mark: TranscriptMark, at: str) -> None:
        """Note where this reading stopped."""
        self._db.execute(
            "INSERT INTO transcript VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE "
            "SET offset_bytes = excluded.offset_bytes, digest = excluded.digest, at = excluded.at",
            (self._transcript, *mark, at),
        )
        self._db.execute(
            "DELETE FROM transcript WHERE at < (SELECT at FROM transcript ORDER BY at DESC LIMIT 1 OFFSET ?)",
            (KEPT_TRANSCRIPTS,),
        )

    def add(self, records: Sequence[Sequence[Name]]) -> list[bool]:
        """Note records, each by all of its names; say of each whether none of its names was known before."""
        hashed = [[_hash(name) for name in names] for names in records]
        unknown = self._add_names(sorted({name for names in hashed for name in names}))
        found = []
        for names in hashed:
            found.append(unknown.issuperset(names))
            unknown.difference_update(names)
        return found

    def _add_names(self, names: Sequence[str]) -> set[str]:
        # In one order everywhere: two servers that add the same names wait for each other and do not lock up.
        rows = self._db.execute(
            "INSERT INTO transcript_record (name) SELECT value FROM json_each(?) WHERE true ORDER BY value "
            "ON CONFLICT (name) DO NOTHING RETURNING name",
            (json.dumps(names),),
        ).fetchall()
        self._db.execute(
            "DELETE FROM transcript_record WHERE seq <= (SELECT max(seq) FROM transcript_record) - ?", (KEPT_RECORDS,)
        )
        return {name for (name,) in rows}

    def forget(self, records: Sequence[Sequence[Name]]) -> None:
        """Let records count as not read, because what they say could not be stored."""
        names = [_hash(name) for names in records for name in names]
        self._db.execute(
            "DELETE FROM transcript_record WHERE name IN (SELECT value FROM json_each(?))", (json.dumps(names),)
        )


def _hash(name: Name) -> str:
    # A lone surrogate, which a host may send, is no UTF-8.
    text = json.dumps(name).encode()
    return hashlib.blake2b(text, digest_size=_NAME_BYTES).hexdigest()
