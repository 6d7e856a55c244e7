"""What is on disk below a data directory: memories, pending work, and any bytes."""

import json
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from config.paths import PERSONAL_WORKSPACE

ACTIVE, CANDIDATE, SUPERSEDED, ARCHIVED = "active", "candidate", "superseded", "archived"
# Compiled models are no data.
MODELS = "models"

# Superseded is a fact whose time has ended, and a memory that another one supersedes, archived or not.
_MEMORIES = """
    SELECT id, seq, content, details, kind, candidate, archived_at, valid_to, valid_to <= :now AS has_ended, subject,
        EXISTS (SELECT 1 FROM edge WHERE to_seq = seq AND edge.kind = 'supersedes') AS is_superseded
    FROM memory ORDER BY seq
"""


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory in a store; `text` is all that its author gave it."""

    workspace: str
    id: str
    kind: str
    status: str
    text: str


class DataDirectory:
    """The files of a data directory, read while the stack runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._made: set[str] = set()

    def list_workspaces(self) -> list[str]:
        """List the stores that exist."""
        return sorted(file.parent.name for file in (self.root / "workspaces").glob("*/events.sqlite"))

    def count_pending(self) -> Counter[str]:
        """Count what waits in all stores, by workspace and stage."""
        counts: Counter[str] = Counter()
        for workspace in self.list_workspaces():
            if not self._is_made(workspace):
                counts[f"{workspace} schema"] = 1
                continue
            with closing(self._open(workspace)) as db:
                rows = db.execute("SELECT stage, COUNT(*) FROM work WHERE dead = 0 GROUP BY stage").fetchall()
            counts |= Counter({f"{workspace} {stage}": count for stage, count in rows})
        return counts

    def list_dead(self) -> list[str]:
        """List what failed for good in all stores, with the error."""
        dead = []
        for workspace in self.list_workspaces():
            with closing(self._open(workspace)) as db:
                rows = db.execute("SELECT stage, error FROM work WHERE dead = 1").fetchall()
            dead += [f"{workspace} {stage}: {error}" for stage, error in rows]
        return dead

    def list_memories(self, now: str) -> list[StoredMemory]:
        """List the memories of all stores, oldest first in each."""
        names = [name for name in self.list_workspaces() if self._is_made(name)]
        return [memory for name in names for memory in self._read(self._open(name), name, now)]

    def read_copies(self, now: str, scratch: Path) -> list[StoredMemory]:
        """List the memories in copies of the files `events.sqlite` alone."""
        memories = []
        for workspace in self.list_workspaces():
            copy = scratch / f"{workspace}.sqlite"
            shutil.copyfile(self._file(workspace), copy)
            memories += self._read(sqlite3.connect(copy), workspace, now)
        return memories

    def find_bytes(self, text: str) -> list[str]:
        """List the files that contain a text, as it is or as JSON writes it."""
        forms = {text.encode(), json.dumps(text)[1:-1].encode()}
        return [
            str(file.relative_to(self.root))
            for file in self._list_files()
            if any(form in content for content in [_read_bytes(file)] for form in forms)
        ]

    def _is_made(self, workspace: str) -> bool:
        if workspace not in self._made:
            with closing(self._open(workspace)) as db:
                row = db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'work'").fetchone()
            self._made |= set() if row is None else {workspace}
        return workspace in self._made

    def _list_files(self) -> Iterator[Path]:
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name != MODELS]
            yield from (Path(folder) / name for name in names)

    def _read(self, db: sqlite3.Connection, workspace: str, now: str) -> list[StoredMemory]:
        with closing(db):
            db.row_factory = sqlite3.Row
            rows = db.execute(_MEMORIES, {"now": now}).fetchall()
        return [
            StoredMemory(workspace, row["id"], row["kind"], _status(row), f"{row['content']} {_details(row)}")
            for row in rows
        ]

    def _open(self, workspace: str) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{self._file(workspace)}?mode=ro", uri=True, timeout=20)

    def _file(self, workspace: str) -> Path:
        return self.root / "workspaces" / workspace / "events.sqlite"


def is_personal(memory: StoredMemory) -> bool:
    """Return whether a memory is in the personal store."""
    return memory.workspace == PERSONAL_WORKSPACE


def _status(row: sqlite3.Row) -> str:
    if row["has_ended"] or row["is_superseded"]:
        return SUPERSEDED
    if row["archived_at"] is not None:
        return ARCHIVED
    return CANDIDATE if row["candidate"] else ACTIVE


def _details(row: sqlite3.Row) -> str:
    return json.dumps(json.loads(row["details"]), ensure_ascii=False)


def _read_bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        # It was removed since, or is a socket.
        return b""
