"""What an error of SQLite means for the file that it is about."""

import sqlite3
from pathlib import Path

from pipeline.errors import StoreBusy, StoreDamaged, StoreFull, StoreUnavailable

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_OUT_OF_REACH = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN})


def failure_of(error: sqlite3.Error, file: Path) -> StoreUnavailable | None:
    """Return what is wrong with a file, None if the error is none of its surroundings'."""
    primary = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if primary in _BUSY:
        return StoreBusy(f"another process holds {file}")
    if primary == sqlite3.SQLITE_FULL:
        return StoreFull(f"the disk of {file} is full: make room")
    if primary in _OUT_OF_REACH:
        return StoreUnavailable(f"{file} cannot be used: {error}; `reverie doctor` looks at its disk and owner")
    if primary == sqlite3.SQLITE_NOTADB:
        return StoreDamaged(f"{file} is damaged, or encrypted with a key that its home does not name: {error}")
    if primary == sqlite3.SQLITE_CORRUPT:
        return StoreDamaged(f"{file} is damaged: {error}")
    return None
