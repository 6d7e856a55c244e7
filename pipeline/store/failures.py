"""Translate SQLite errors into errors about the store file."""

import sqlite3
from pathlib import Path

from pipeline.errors import StoreBusy, StoreDamaged, StoreFull, StoreUnavailable

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_OUT_OF_REACH = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN})


def failure_of(error: sqlite3.Error, file: Path) -> StoreUnavailable | None:
    """Return the error of a file, None if the error has no external cause."""
    primary = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if primary in _BUSY:
        return StoreBusy(f"another process uses {file}")
    if primary == sqlite3.SQLITE_FULL:
        return StoreFull(f"the disk of {file} is full; free some space")
    if primary in _OUT_OF_REACH:
        return StoreUnavailable(f"{file} cannot be used: {error}; run `reverie doctor` to check its disk and owner")
    # Without a code: Python raises it, and its message quotes the text.
    if isinstance(error, sqlite3.OperationalError) and str(error).startswith("Could not decode to UTF-8"):
        return StoreDamaged(f"{file} contains text that is not UTF-8")
    if primary not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return None
    is_foreign = primary == sqlite3.SQLITE_NOTADB
    key = ", or encrypted with another key than the data directory's" if is_foreign else ""
    return StoreDamaged(f"{file} is damaged{key}: {error}")
