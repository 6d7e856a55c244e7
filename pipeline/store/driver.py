"""Opening a file of the store: by `sqlite3`, or in an encrypted data directory by SQLCipher with the home's key.

A file's own first page tells whether it is encrypted. While `reverie encrypt` or `reverie decrypt` is under way, and
after one was interrupted, an encrypted home holds files of both kinds, and all of them can be used; a file that is made
in it is encrypted from its first byte.
"""

import sqlite3
import sys
from abc import ABCMeta
from pathlib import Path
from typing import Any, Literal, TypeVar

from pipeline.enums import Stage
from pipeline.store.key import StoreKey, find_key

# What a file begins with that is not encrypted.
PLAIN = b"SQLite format 3\0"

_Error = TypeVar("_Error", bound=sqlite3.Error)


class WriteConnection(sqlite3.Connection, metaclass=ABCMeta):
    """A connection whose transaction collects whom its commit wakes; SQLCipher's has a class of its own."""

    wake_ups: set[Stage | None]


def connect(
    file: Path,
    mode: Literal["ro", "rw", "rwc"] = "rw",
    *,
    writes: bool = False,
    timeout_s: float = 5.0,
    is_shared: bool = False,
    cached_statements: int = 128,
) -> sqlite3.Connection:
    """Open a file of the store, for writing as a WriteConnection; `is_shared` lets any thread use it, one at a time.

    Raises KeyUnavailable where the home is encrypted and its key cannot be had.
    """
    options: dict[str, Any] = {
        "uri": True,
        "timeout": timeout_s,
        "isolation_level": None,
        "check_same_thread": not is_shared,
        "cached_statements": cached_statements,
    }
    place = f"{file.absolute().as_uri()}?mode={mode}"
    key = find_key(file)
    if key is None:
        plain: sqlite3.Connection = sqlite3.connect(
            place, factory=WriteConnection if writes else sqlite3.Connection, **options
        )
        return plain
    from pipeline.store import cipher

    # Plain files too: two libraries of SQLite that have one file open in one process undo each other's locks.
    return cipher.connect(place, key.digits, writes=writes, options=options)


def is_encrypted(connection: sqlite3.Connection) -> bool:
    """Return whether the file of a connection is encrypted."""
    return getattr(connection, "is_keyed", False)


def export(source: sqlite3.Connection, target: Path, key: StoreKey | None) -> dict[str, int]:
    """Copy a store of an encrypted home into an empty file, encrypted where a key is given, and compare every row.

    Returns how many rows each table has; raises StoreDamaged where the copy is not what it was made from.
    """
    from pipeline.store import cipher

    return cipher.export(source, target, None if key is None else key.digits)


def opens(file: Path, key: StoreKey) -> bool:
    """Return whether a key opens an encrypted file, whatever its home says."""
    from pipeline.store import cipher

    return cipher.opens(f"{file.absolute().as_uri()}?mode=ro", key.digits)


def is_plain(file: Path) -> bool:
    """Return whether a file is a store that is not encrypted; one that is empty or not there yet is none.

    For who has no connection to it: closing a file ends every lock that its process has on it.
    """
    try:
        with file.open("rb") as content:
            return content.read(len(PLAIN)) == PLAIN
    except FileNotFoundError:
        return False


def sqlite_errors(kind: type[_Error]) -> tuple[type[_Error], ...]:
    """Return the classes by which an error of `sqlite3` is raised, SQLCipher's too where it is loaded.

    An `except` asks for them only once something was raised.
    """
    loaded = sys.modules.get("sqlcipher3.dbapi2")
    return (kind,) if loaded is None else (kind, getattr(loaded, kind.__name__))


def as_sqlite3(error: Exception) -> sqlite3.Error:
    """Return an error of SQLCipher's as the one of `sqlite3` by the same name, which callers know."""
    if isinstance(error, sqlite3.Error):
        return error
    known: sqlite3.Error = getattr(sqlite3, type(error).__name__)(*error.args)
    known.sqlite_errorcode = getattr(error, "sqlite_errorcode", 0)
    return known
