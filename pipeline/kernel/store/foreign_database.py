"""Read another program's SQLite database, which that program may be writing at the same time.

Nothing is written, not even next to the file. Each page of rows is a short transaction: the program never waits long.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

from pipeline.kernel.errors import ForeignDatabaseUnreadable

PAGE_ROWS = 200
# Longer values, such as tool output with images, are not loaded.
MAX_VALUE_BYTES = 8 * 1024 * 1024
# The program's own writes are short.
BUSY_S = 1.0
# The two bytes of a file's header that name the journal.
_JOURNAL = slice(18, 20)
_WAL = b"\x02\x02"

# A column, an operator and a value.
Condition = tuple[str, Literal["=", ">", ">=", "<", "<="], Any]
Row = dict[str, Any]


class ForeignDatabase:
    """Rows of an open database, by table and column names that this program chose."""

    def __init__(self, path: Path, db: sqlite3.Connection, log: Path | None) -> None:
        self._path = path
        self._db = db
        # The write-ahead log that must not appear, because the connection would ignore it.
        self._log = log
        self._columns: dict[str, frozenset[str]] = {}

    def columns(self, table: str) -> frozenset[str]:
        """Return the names of a table's columns, none if there is no such table."""
        if table not in self._columns:
            self._columns[table] = frozenset(row[1] for row in self._run(f"PRAGMA table_info({_quote(table)})", ()))
        return self._columns[table]

    def rows(
        self, table: str, columns: Sequence[str], conditions: Sequence[Condition] = (), order: str = "rowid"
    ) -> Iterator[Row]:
        """Yield rows with `rowid` in the order of a unique column; a column that the table lacks is None."""
        present = self.columns(table) | {"rowid"}
        if len(present) == 1:
            raise ForeignDatabaseUnreadable(self._path, f"has no table {table}")
        selected = ", ".join(_bounded(column) if column in present else "NULL" for column in columns)
        known = [condition for condition in conditions if condition[0] in present]
        query = f"SELECT rowid, {_quote(order)}, {selected} FROM {_quote(table)}"  # noqa: S608 - quoted names
        page: list[tuple[Any, ...]] = []
        while True:
            later = [*known, (order, ">", page[-1][1])] if page else known
            tests = "".join(f" AND {_quote(column)} {operator} ?" for column, operator, _ in later)
            values = [value for _, _, value in later]
            page = self._run(f"{query} WHERE 1{tests} ORDER BY {_quote(order)} LIMIT {PAGE_ROWS}", values)
            yield from ({"rowid": row[0]} | dict(zip(columns, row[2:], strict=True)) for row in page)
            if len(page) < PAGE_ROWS:
                return

    def largest(self, table: str, column: str) -> int:
        """Return the largest number of a column, 0 without rows."""
        (value,) = self._run(f"SELECT max({_quote(column)}) FROM {_quote(table)}", ())[0]  # noqa: S608 - quoted names
        return value if isinstance(value, int) else 0

    def values(self, table: str, column: str, conditions: Sequence[Condition] = ()) -> list[Any]:
        """Return the distinct values of a column."""
        tests = " AND ".join(f"{_quote(name)} {operator} ?" for name, operator, _ in conditions) or "1"
        query = f"SELECT DISTINCT {_quote(column)} FROM {_quote(table)} WHERE {tests}"  # noqa: S608 - quoted names
        return [value for (value,) in self._run(query, [value for _, _, value in conditions])]

    def _run(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        try:
            result = self._db.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise ForeignDatabaseUnreadable(self._path, f"cannot be read now: {error}") from error
        if self._log is not None and self._log.exists():
            raise ForeignDatabaseUnreadable(self._path, "is being changed")
        return result


def read_rows(path: Path, table: str, columns: Sequence[str]) -> Iterator[Row]:
    """Yield a table's rows in the order of their rowid, none if there is no such table.

    Raises ForeignDatabaseUnreadable.
    """
    with open_foreign_database(path) as db:
        if db.columns(table):
            yield from db.rows(table, columns)


@contextmanager
def open_foreign_database(path: Path) -> Iterator[ForeignDatabase]:
    """Open a database for reading; raise ForeignDatabaseUnreadable if it cannot be opened."""
    log = path.with_name(f"{path.name}-wal")
    try:
        with path.open("rb") as content:
            has_log = content.read(_JOURNAL.stop)[_JOURNAL] == _WAL
        # Without a log no program has the file open. A reader that may not ignore logs would create one.
        is_unused = has_log and not log.exists()
        uri = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if is_unused else ''}"
        connection = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise ForeignDatabaseUnreadable(path, f"cannot be opened: {error}") from error
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    with closing(connection):
        yield ForeignDatabase(path, connection, log if is_unused else None)


def _bounded(column: str) -> str:
    name = _quote(column)
    return f"CASE WHEN length({name}) > {MAX_VALUE_BYTES} THEN NULL ELSE {name} END"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
