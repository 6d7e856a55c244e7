"""Writes to two stores that may be interrupted between their commits, with the data needed to finish them.

Stored as values of the store that commits first, until the other store has committed.
"""

from sqlite3 import Connection

from pipeline.errors import Conflict
from pipeline.store import meta

MOVE, BATCH = "move", "batch"
_PREFIX = "unfinished:"


def add(db: Connection, kind: str, name: str, value: str) -> None:
    """Record the data needed to finish a write."""
    meta.put(db, _key(kind, name), value)


def find(db: Connection, kind: str, name: str) -> str | None:
    """Return the data needed to finish a write, None if it is not pending."""
    return meta.get(db, _key(kind, name))


def drop(db: Connection, kind: str, name: str) -> None:
    """Delete a finished write."""
    meta.drop(db, _key(kind, name))


def list_names(db: Connection, kind: str) -> list[str]:
    """List the unfinished writes of a kind, by name."""
    prefix = _key(kind, "")
    return [key.removeprefix(prefix) for key in meta.list_keys(db, prefix)]


def has_unfinished_writes(db: Connection) -> bool:
    """Return whether any write is unfinished."""
    return bool(meta.list_keys(db, _PREFIX))


def require_unmoved(db: Connection, memory_id: str) -> None:
    """Raise Conflict while a memory is being moved: a change here would be lost."""
    if find(db, MOVE, memory_id) is not None:
        raise Conflict("This memory is being moved to another workspace. Try again in a moment, or change it there.")


def _key(kind: str, name: str) -> str:
    return f"{_PREFIX}{kind}:{name}"
