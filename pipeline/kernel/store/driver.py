"""Open a file of the store, with `sqlite3` or, in an encrypted data directory, with SQLCipher and its key.

The first page of a file shows whether it is encrypted. During and after an interrupted `reverie store encrypt` or
`decrypt`, a data directory contains files of both kinds, and all of them can be used; new files are encrypted from
the first byte.
"""

import sqlite3
import sys
from pathlib import Path
from typing import Any, Literal, TypeVar

from pipeline.kernel.errors import StoreBusy, StoreDamaged, StoreFull, StoreUnavailable
from pipeline.kernel.store.database import WriteConnection
from pipeline.kernel.store.key import StoreKey, find_key

# The start of a file that is not encrypted.
PLAIN = b"SQLite format 3\0"

_Error = TypeVar("_Error", bound=sqlite3.Error)


def connect(
    file: Path,
    mode: Literal["ro", "rw", "rwc"] = "rw",
    *,
    writes: bool = False,
    timeout_s: float = 5.0,
    is_shared: bool = False,
    cached_statements: int = 128,
) -> sqlite3.Connection:
    """Open a store file, for writing as a WriteConnection; `is_shared` allows any thread, one at a time.

    Raises KeyUnavailable if the data directory is encrypted and its key cannot be read.
    """
    options: dict[str, Any] = {
        "uri": True,
        "timeout": timeout_s,
        "isolation_level": None,
        "check_same_thread": not is_shared,
        "cached_statements": cached_statements,
    }
    uri = f"{file.absolute().as_uri()}?mode={mode}"
    key = find_key(file)
    if key is None:
        plain: sqlite3.Connection = sqlite3.connect(
            uri, factory=WriteConnection if writes else sqlite3.Connection, **options
        )
        return plain
    from pipeline.kernel.store import cipher

    # Plain files too: two SQLite libraries that open the same file in one process drop each other's locks.
    return cipher.connect(uri, key.digits, writes=writes, options=options)


def is_encrypted(connection: sqlite3.Connection) -> bool:
    """Return whether the file of a connection is encrypted."""
    return getattr(connection, "is_keyed", False)


def export(source: sqlite3.Connection, target: Path, key: StoreKey | None) -> dict[str, int]:
    """Copy a store of an encrypted data directory into an empty file, encrypted if a key is given; compare every row.

    Returns the number of rows per table; raises StoreDamaged if the copy differs from its source.
    """
    from pipeline.kernel.store import cipher

    return cipher.export(source, target, None if key is None else key.digits)


def opens(file: Path, key: StoreKey) -> bool:
    """Return whether a key opens an encrypted file, even outside its data directory."""
    from pipeline.kernel.store import cipher

    return cipher.opens(f"{file.absolute().as_uri()}?mode=ro", key.digits)


def is_plain(file: Path) -> bool:
    """Return whether a file is an unencrypted store; a missing or empty file is not.

    Only for processes without a connection to the file: closing it drops every lock that the process has on it.
    """
    try:
        with file.open("rb") as content:
            return content.read(len(PLAIN)) == PLAIN
    except FileNotFoundError:
        return False


def sqlite_errors(kind: type[_Error]) -> tuple[type[_Error], ...]:
    """Return the error classes for a kind of `sqlite3` error, including SQLCipher's if it is loaded.

    Use it in `except`: it is evaluated only after an error.
    """
    loaded = sys.modules.get("sqlcipher3.dbapi2")
    return (kind,) if loaded is None else (kind, getattr(loaded, kind.__name__))


def as_sqlite3(error: Exception) -> sqlite3.Error:
    """Translate a SQLCipher error into the `sqlite3` error of the same name, which callers expect."""
    if isinstance(error, sqlite3.Error):
        return error
    known: sqlite3.Error = getattr(sqlite3, type(error).__name__)(*error.args)
    known.sqlite_errorcode = getattr(error, "sqlite_errorcode", 0)
    return known


_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_OUT_OF_REACH = frozenset(
    {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM}
)
# SQL functions such as `sqlcipher_export` pass on the message of a failure with a code that says nothing.
_CODES = {
    "database or disk is full": sqlite3.SQLITE_FULL,
    "disk I/O error": sqlite3.SQLITE_IOERR,
    "unable to open database file": sqlite3.SQLITE_CANTOPEN,
    "attempt to write a readonly database": sqlite3.SQLITE_READONLY,
    "out of memory": sqlite3.SQLITE_NOMEM,
    "database is locked": sqlite3.SQLITE_BUSY,
}


def failure_of(error: sqlite3.Error, file: Path) -> StoreUnavailable | None:
    """Return the error of a file, None if the error has no external cause."""
    primary = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if primary in (0, sqlite3.SQLITE_ERROR):
        primary = _CODES.get(str(error), primary)
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
