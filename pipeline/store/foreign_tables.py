"""Read tables of other programs' SQLite files without changing the files.

Such a schema grows with each version of its program: a missing column reads as None, a missing table has no rows.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from pipeline.errors import FieldError, InvalidField

Row = Mapping[str, Any]
TIMEOUT_S = 5.0
AT_ONCE = 500


def list_values(file: Path, table: str, column: str) -> list[Any]:
    """Return the distinct values of a column in order; raise InvalidField for an unreadable file."""
    values = {row[column] for row in read_rows(file, table, (column,))}
    return sorted((value for value in values if value is not None), key=str)


def read_rows(file: Path, table: str, columns: Sequence[str], order: Sequence[str] = ()) -> Iterator[Row]:
    """Yield the rows of a table with some columns, in the order of its rows or of other columns.

    Raises InvalidField for a file that is no readable database.
    """
    try:
        with closing(_connect(file)) as db:
            # PRAGMA takes no parameter.
            present = {row[1] for row in db.execute(f"PRAGMA table_info({_quote(table)})")}
            named = [column for column in columns if column in present]
            if not named:
                return
            known = [column for column in order if column in present]
            sorted_by = f" ORDER BY {', '.join(map(_quote, known))}" if known else ""
            listed = ", ".join(map(_quote, named))
            rows = db.execute(f"SELECT {listed} FROM {_quote(table)}{sorted_by}")  # noqa: S608 - quoted names
            missing = dict.fromkeys(columns)
            while batch := rows.fetchmany(AT_ONCE):
                for row in batch:
                    yield {**missing, **dict(zip(named, row, strict=True))}
    except sqlite3.Error as error:
        raise InvalidField(FieldError("path", f"cannot be read: {error}")) from error


def _connect(file: Path) -> sqlite3.Connection:
    uri = file.absolute().as_uri()
    db = sqlite3.connect(f"{uri}?mode=ro", uri=True, timeout=TIMEOUT_S)
    db.text_factory = lambda raw: raw.decode("utf-8", "replace")
    try:
        db.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        # Without the right to write next to it, a file in WAL mode can be read only as it was last checkpointed.
        db.close()
        db = sqlite3.connect(f"{uri}?immutable=1", uri=True, timeout=TIMEOUT_S)
        db.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return db


def _quote(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))
