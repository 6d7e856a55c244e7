"""Copy one store into another, of the same engine or not, and compare them row by row.

Tables and columns are read from the schema. A table is read in the order of its primary key, comparing texts by
bytes, so that equal stores yield the same rows in the same order and the same fingerprint.
"""

import hashlib
import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, Literal, Self

from pipeline.kernel.errors import Conflict, CopyDiffers, StoreDamaged
from pipeline.kernel.store.driver import sqlite_errors
from pipeline.kernel.store.rows import find_row

Row = tuple[Any, ...]
# Receives the number of rows since the last call.
Progress = Callable[[int], object]

# The migration table of a file; each engine has its own.
MIGRATIONS_TABLE: Final = "_sqlite_migrations"
# Number of rows per batch: little memory, few calls.
BATCH: Final = 2000
_CAN_HOLD: Final[Mapping[str, frozenset[type]]] = {
    "INTEGER": frozenset({int}),
    "REAL": frozenset({float}),
    "TEXT": frozenset({str}),
}
_NOTED: Final = "touched"
_LAST: Final[Mapping[str, int]] = {"memory": 1, _NOTED: 2}
_encode = json.JSONEncoder(separators=(",", ":"), default=lambda value: {"bytes": value.hex()}).encode


def ignore_progress(_rows: int) -> None:
    """Ignore the progress."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns, their declared types, and the positions of its primary key.

    `once` means that it never reuses a number.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    key: tuple[int, ...]
    once: bool

    def key_of(self, row: Row) -> Row:
        """Return a row's primary key."""
        return tuple(row[position] for position in self.key)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The number of rows in a store, and a digest of all rows and counters."""

    rows: int
    digest: str


class StoreTables(ABC):
    """The tables of a store, in one snapshot or within a transaction of the caller."""

    tables: Sequence[Table]

    @abstractmethod
    def count(self, tables: Iterable[Table]) -> int:
        """Count the rows of tables."""

    @abstractmethod
    def rows(self, table: Table) -> Generator[Row, None, None]:
        """Iterate over a table's rows in key order; close the iterator before another query."""

    @abstractmethod
    def marks(self) -> dict[str, int]:
        """Return the highest number of each table that never reuses numbers, if the row with that number is gone."""

    @abstractmethod
    def clear(self, tables: Iterable[Table]) -> None:
        """Delete every row of tables, and reset their counters."""

    @abstractmethod
    def fill(self, table: Table, rows: Iterable[Row]) -> None:
        """Insert rows into an empty table."""

    @abstractmethod
    def set_counters(self, marks: Mapping[str, int]) -> None:
        """Set the counters of tables."""

    def find_unsupported_value(self, table: Table, row: Row) -> str | None:  # noqa: ARG002 - SQLite stores every row
        """Return the value of a row that this store cannot represent, None if it can represent all."""
        return None


class SqliteTables(StoreTables):
    """The tables of a SQLite file, all or some, on a connection whose transaction belongs to the caller."""

    def __init__(self, db: sqlite3.Connection, names: Sequence[str] | None = None) -> None:
        self._db = db
        rows = db.execute(
            "SELECT name, sql LIKE '%AUTOINCREMENT%' FROM sqlite_master "
            "WHERE type = 'table' AND name NOT GLOB 'sqlite_*' AND name <> ? ORDER BY rowid",
            (MIGRATIONS_TABLE,),
        )
        self.tables = [
            _describe(db, name, once=bool(once)) for name, once in rows.fetchall() if names is None or name in names
        ]

    def count(self, tables: Iterable[Table]) -> int:
        """Count the rows of tables."""
        counts = (self._db.execute(f'SELECT count(*) FROM "{table.name}"').fetchone() for table in tables)  # noqa: S608 - names of the file's own tables
        return sum(int(count) for (count,) in counts)

    def rows(self, table: Table) -> Generator[Row, None, None]:
        """Iterate over a table's rows in key order."""
        columns = ", ".join(f'"{name}"' for name in table.columns)
        order = ", ".join(f'"{table.columns[position]}"' for position in table.key)
        last: Row | None = None
        try:
            for row in self._db.execute(f'SELECT {columns} FROM "{table.name}" ORDER BY {order}'):  # noqa: S608 - ditto
                last = table.key_of(row)
                yield row
        except sqlite_errors(sqlite3.OperationalError) as error:
            if "decode" not in str(error):
                raise
            # Without SQLite's message, which quotes the text.
            position = "its first row" if last is None else f"the row after {format_key(last)}"
            raise StoreDamaged(f"{table.name}: {position} contains text that is not UTF-8") from None

    def marks(self) -> dict[str, int]:
        """Return the highest number of each table that never reuses numbers, if the row with that number is gone."""
        return {table.name: mark for table in self.tables if table.once and (mark := self._find_mark(table.name))}

    def _find_mark(self, name: str) -> int | None:
        row = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (name,)).fetchone()
        highest = self._db.execute(f'SELECT coalesce(max(seq), 0) FROM "{name}"').fetchone()  # noqa: S608 - ditto
        return int(row[0]) if row is not None and row > highest else None

    def clear(self, tables: Iterable[Table]) -> None:
        """Delete every row of tables, and reset their counters."""
        for table in tables:
            self._db.execute(f'DELETE FROM "{table.name}"')  # noqa: S608 - ditto
            if table.once:
                self._db.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table.name,))

    def fill(self, table: Table, rows: Iterable[Row], *, conflict: Literal["ABORT", "IGNORE"] = "ABORT") -> None:
        """Insert rows into a table; `conflict` is SQLite's action for a row whose key is there."""
        columns = ", ".join(f'"{name}"' for name in table.columns)
        placeholders = ", ".join("?" * len(table.columns))
        self._db.executemany(
            f'INSERT OR {conflict} INTO "{table.name}" ({columns}) VALUES ({placeholders})',  # noqa: S608 - ditto
            rows,
        )

    def set_counters(self, marks: Mapping[str, int]) -> None:
        """Set the counters of tables."""
        for name, seq in marks.items():
            # A table that never had a row has no counter.
            self._db.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
            self._db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, seq))


class ConfigTable(SqliteTables):
    """The text of a workspace's settings as a table, so that it is moved and compared like the rest of a store."""

    def __init__(self, db: sqlite3.Connection, workspace_id: str, text: str) -> None:
        db.execute("CREATE TABLE config (workspace TEXT PRIMARY KEY, text TEXT)")
        if text:
            db.execute("INSERT INTO config VALUES (?, ?)", (workspace_id, text))
        super().__init__(db)

    @classmethod
    @contextmanager
    def opened(cls, workspace_id: str, text: str = "") -> Iterator[Self]:
        """Open a table in memory."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
            yield cls(db, workspace_id, text)

    @property
    def text(self) -> str:
        """Return the text, empty without a row."""
        return find_row(self._db, str, "SELECT text FROM config") or ""

    def find_unsupported_value(self, table: Table, row: Row) -> str | None:  # noqa: ARG002 - there is only one table
        """Return why a text cannot be stored as settings: it contains a NUL character."""
        return "contains a NUL character" if "\0" in row[1] else None


def _describe(db: sqlite3.Connection, name: str, *, once: bool) -> Table:
    columns = db.execute("SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid", (name,)).fetchall()
    keyed = sorted((pk, position) for position, (_, _, pk) in enumerate(columns) if pk)
    return Table(
        name,
        tuple(column for column, _, _ in columns),
        tuple("REAL" if kind == "FLOAT" else kind for _, kind, _ in columns),
        tuple(position for _, position in keyed),
        once,
    )


def copy(source: StoreTables, target: StoreTables, progress: Progress = ignore_progress) -> Fingerprint:
    """Replace a store's content by another's, compare both, and return the fingerprint.

    Commits nothing: both stores are read and written in their callers' transactions. Raises Conflict, which names the
    row, if the target cannot represent it; CopyDiffers if the target returns another row than it was given.
    """
    _check_same_schema(source, target)
    target.clear(target.tables)
    # The target's triggers record changes of memories; these records are not part of the copy.
    for table in sorted(source.tables, key=lambda table: _LAST.get(table.name, 0)):
        if table.name == _NOTED:
            target.clear([table])
        with closing(_report_progress(_checked(source, target, table), progress)) as rows:
            target.fill(table, rows)
    target.set_counters(source.marks())
    return compare(source, target, progress)


def compare(source: StoreTables, target: StoreTables, progress: Progress = ignore_progress) -> Fingerprint:
    """Return the fingerprint of two equal stores; raise CopyDiffers, which names the first different row, otherwise."""
    digest = _Digest()
    for table in source.tables:
        # A server continues to send rows until the iterator is closed.
        with closing(source.rows(table)) as left, closing(target.rows(table)) as right:
            for here, there in _report_progress(zip_longest(left, right), progress):
                if here != there:
                    raise CopyDiffers(table.name, format_key(table.key_of(there if here is None else here)))
                digest.add(table, there)
    if (here := source.marks()) != (there := target.marks()):
        name = min(name for name in {*here, *there} if here.get(name) != there.get(name))
        raise CopyDiffers(name, "its counter")
    return digest.finish(there)


def fingerprint(source: StoreTables, progress: Progress = ignore_progress) -> Fingerprint:
    """Return the fingerprint of a store."""
    digest = _Digest()
    for table in source.tables:
        with closing(source.rows(table)) as rows:
            for row in _report_progress(rows, progress):
                digest.add(table, row)
    return digest.finish(source.marks())


def format_key(key: Row) -> str:
    """Format a row's key for messages."""
    return ", ".join(map(str, key))


class _Digest:
    """A digest of rows, added in order."""

    def __init__(self) -> None:
        self._all = hashlib.sha256()
        self._rows = 0
        self._table = ""

    def add(self, table: Table, row: Row) -> None:
        if table.name != self._table:
            self._table = table.name
            self._all.update(f"{_encode((table.name, *table.columns))}\n".encode("ascii"))
        self._all.update(f"{_encode(row)}\n".encode("ascii"))
        self._rows += 1

    def finish(self, marks: Mapping[str, int]) -> Fingerprint:
        self._all.update(_encode(sorted(marks.items())).encode("ascii"))
        return Fingerprint(self._rows, self._all.hexdigest())


def _report_progress(rows: Iterable[Any], progress: Progress) -> Generator[Any, None, None]:
    count = 0
    for count, row in enumerate(rows, 1):
        yield row
        if not count % BATCH:
            progress(BATCH)
    progress(count % BATCH)


def _checked(source: StoreTables, target: StoreTables, table: Table) -> Iterator[Row]:
    fits: set[tuple[type, ...]] = set()
    for row in source.rows(table):
        # Rows have few patterns of types, so each pattern is analyzed once.
        if (pattern := tuple(map(type, row))) not in fits:
            _check_types(table, row)
            fits.add(pattern)
        if (unfit := target.find_unsupported_value(table, row)) is not None:
            raise Conflict(f"{table.name} {format_key(table.key_of(row))}: {unfit}")
        yield row


def _check_types(table: Table, row: Row) -> None:
    for name, kind, value in zip(table.columns, table.types, row, strict=True):
        allowed = _CAN_HOLD.get(kind)
        if value is not None and allowed is not None and type(value) not in allowed:
            location = f"{table.name} {format_key(table.key_of(row))}"
            raise StoreDamaged(f"{location}: {name} contains {type(value).__name__} where {kind} belongs")


def _check_same_schema(source: StoreTables, target: StoreTables) -> None:
    sides = [{table.name: sorted(table.columns) for table in store.tables} for store in (source, target)]
    for name in sorted({*sides[0], *sides[1]}):
        if sides[0].get(name) != sides[1].get(name):
            raise Conflict(f"the two stores are of different versions of Reverie: {name} is not the same in both")
