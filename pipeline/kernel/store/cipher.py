"""SQLCipher: connections with a key, and copies between plain and encrypted files.

Only imported in encrypted data directories.
"""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

from pipeline.kernel.enums import Stage
from pipeline.kernel.errors import StoreDamaged
from pipeline.kernel.extras import require_extra
from pipeline.kernel.store.database import WriteConnection

require_extra("encryption")

from sqlcipher3 import dbapi2  # noqa: E402 - the line above explains how to install it


class CipherConnection(dbapi2.Connection):  # type: ignore[misc]  # the library has no types
    """A SQLCipher connection; `is_keyed` says whether its file is encrypted."""

    is_keyed = False


class CipherWriteConnection(CipherConnection):
    """A connection to an encrypted file, whose transaction collects the stages that its commit wakes."""

    wake_ups: set[Stage | None]


WriteConnection.register(CipherWriteConnection)


def connect(uri: str, digits: str, *, writes: bool, options: Mapping[str, Any]) -> sqlite3.Connection:
    """Open the file at a URI with a key (hexadecimal digits); a plain file is opened without."""
    kind = CipherWriteConnection if writes else CipherConnection
    # Read the file only through the library: closing a file drops every lock that this process has on it.
    keyed = _open(uri, digits, kind, options)
    if not _reads(keyed):
        plain = _open(uri, None, kind, options)
        if _reads(plain):
            keyed.close()
            return cast("sqlite3.Connection", plain)
        plain.close()
    # All other classes of the library equal those of sqlite3.
    return cast("sqlite3.Connection", keyed)


def opens(uri: str, digits: str) -> bool:
    """Return whether a key opens the encrypted file at a URI."""
    with closing(_open(uri, digits, CipherConnection, {"uri": True})) as connection:
        return _reads(connection)


def _open(uri: str, digits: str | None, kind: type[CipherConnection], options: Mapping[str, Any]) -> CipherConnection:
    connection = cast("CipherConnection", dbapi2.connect(uri, factory=kind, **options))
    # SQLCipher would log every unreadable page to the terminal; the caller gets the error.
    connection.execute("PRAGMA cipher_log_level = NONE")
    if digits is not None:
        connection.execute(f'PRAGMA key = "{_quote(digits)}"')
        connection.is_keyed = True
    return connection


def _reads(connection: CipherConnection) -> bool:
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except dbapi2.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_NOTADB:
            return False
        connection.close()
        raise
    return True


def _quote(digits: str) -> str:
    # In this form the digits are the raw key; any other text is a passphrase for a slow key derivation.
    return f"x'{digits}'"


def export(source: sqlite3.Connection, target: Path, digits: str | None) -> dict[str, int]:
    """Copy a store into an empty file, encrypted if a key is given; compare and count the rows of every table."""
    source.execute("ATTACH DATABASE ? AS target KEY ?", (str(target), "" if digits is None else _quote(digits)))
    # One read transaction from start to end, without concurrent writes.
    source.execute("BEGIN")
    source.execute("SELECT sqlcipher_export('target')").fetchone()
    for name in ("user_version", "application_id"):
        value = source.execute(f"PRAGMA main.{name}").fetchone()[0]
        source.execute(f"PRAGMA target.{name} = {value}")
    counts = _compare(source)
    source.execute("COMMIT")
    source.execute("DETACH DATABASE target")
    return counts


def _compare(db: sqlite3.Connection) -> dict[str, int]:
    schemas = [
        db.execute(f"SELECT type, name, tbl_name, sql FROM {side}.sqlite_master ORDER BY type, name").fetchall()  # noqa: S608 - constant names
        for side in ("main", "target")
    ]
    if schemas[0] != schemas[1]:
        raise StoreDamaged("the copy's schema differs from its source")
    tables = [name for kind, name, *_ in schemas[0] if kind == "table"]
    counts = {name: _compare_rows(db, name) for name in tables}
    return {name: rows for name, rows in counts.items() if not name.startswith("sqlite_")}


def _compare_rows(db: sqlite3.Connection, table: str) -> int:
    rows = 0
    sides = [db.execute(f'SELECT * FROM {side}."{table}"') for side in ("main", "target")]  # noqa: S608 - names of the file's own tables
    for here, there in zip_longest(*sides):
        if here != there:
            raise StoreDamaged(f"the copy has other rows in {table} than its source")
        rows += 1
    return rows
