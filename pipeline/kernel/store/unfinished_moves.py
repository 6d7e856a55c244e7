"""Moves of memories to other workspaces that may be interrupted between two commits, with the data to finish them.

Stored as values of the workspace that the memory leaves, until it has arrived.
"""

from sqlite3 import Connection

from pipeline.kernel.errors import Conflict
from pipeline.kernel.store import meta

_PREFIX = "unfinished:move:"


def add(db: Connection, memory_id: str, value: str) -> None:
    """Record the data needed to finish a move."""
    meta.put(db, _PREFIX + memory_id, value)


def find(db: Connection, memory_id: str) -> str | None:
    """Return the data needed to finish a move, None if the memory is not being moved."""
    return meta.get(db, _PREFIX + memory_id)


def drop(db: Connection, memory_id: str) -> None:
    """Delete a finished move."""
    meta.drop(db, _PREFIX + memory_id)


def list_ids(db: Connection) -> list[str]:
    """List the memories whose move is unfinished."""
    return [key.removeprefix(_PREFIX) for key in meta.list_keys(db, _PREFIX)]


def require_unmoved(db: Connection, memory_id: str) -> None:
    """Raise Conflict while a memory is being moved: a change here would be lost."""
    if find(db, memory_id) is not None:
        raise Conflict("This memory is being moved to another workspace. Try again in a moment, or change it there.")
