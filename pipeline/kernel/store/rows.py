"""Rows of queries as values and records, and the declarations of tables.

The fields of a record are the columns, in their order. Every purge, check, exchange and move uses the declarations.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from sqlite3 import Connection
from types import NoneType
from typing import Any, Final, Generic, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from pipeline.kernel.records import Memory

_Record = TypeVar("_Record")
# The values of a statement, by position or by name.
Parameters = Sequence[Any] | Mapping[str, Any]


def list_rows(db: Connection, kind: type[_Record], statement: str, values: Parameters = ()) -> list[_Record]:
    """Return a query's rows as records of a class, or its only column as values of a type."""
    return list(map(_reader(kind), db.execute(statement, values)))  # type: ignore[arg-type]  # a class is hashable


def find_row(db: Connection, kind: type[_Record], statement: str, values: Parameters = ()) -> _Record | None:
    """Return a query's first row as a record or a value; None without rows, or if the value is NULL."""
    row = db.execute(statement, values).fetchone()
    return None if row is None or row == (None,) else _reader(kind)(row)  # type: ignore[arg-type]  # ditto


def has_row(db: Connection, statement: str, values: Parameters = ()) -> bool:
    """Return whether a query has any row."""
    return db.execute(statement, values).fetchone() is not None


def join_conditions(conditions: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the conditions whose value is not None as one condition, and their values."""
    chosen = {condition: value for condition, value in conditions.items() if value is not None}
    return " AND ".join(["true", *chosen]), list(chosen.values())


def escape_like(text: str) -> str:
    """Return a text as part of a pattern of LIKE with a backslash as escape character."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def quote_values(values: Iterable[StrEnum]) -> str:
    """Return members of an enumeration as a list of SQL texts."""
    return ", ".join(f"'{value.value}'" for value in values)


class Rows(Generic[_Record]):
    """How records of a class are stored in a table: as text and numbers, tuples and mappings as JSON.

    `columns` names the columns of fields that have another name, or the expressions that compute them. The store
    numbers the rows of new records, so `insert` leaves out the field `seq`.
    """

    def __init__(self, record: type[_Record], table: str, **columns: str) -> None:
        hints = get_type_hints(record)
        fields = _list_fields(record)
        name, _, alias = table.partition(" ")
        prefix = f"{alias}." if alias else ""
        self.columns = ", ".join(columns.get(field, prefix + field) for field in fields)
        self._select = f"SELECT {self.columns} FROM {table}"  # noqa: S608 - names of the code
        self.read = _reader(record)  # type: ignore[arg-type]  # ditto
        self._stored = [(field, _kind(hints[field]) in (tuple, Mapping)) for field in fields if field != "seq"]
        given = [columns.get(field, field) for field, _ in self._stored]
        self.insert = f"INSERT INTO {name} ({', '.join(given)}) VALUES ({', '.join('?' * len(given))})"  # noqa: S608

    def fetch(self, db: Connection, rest: str, values: Parameters = ()) -> list[_Record]:
        """Return the records that the rest of a statement after FROM selects."""
        return list(map(self.read, db.execute(f"{self._select} {rest}", values)))

    def fetch_one(self, db: Connection, rest: str, values: Parameters = ()) -> _Record | None:
        """Return the first record that `fetch` would return, None if there is none."""
        row = db.execute(f"{self._select} {rest}", values).fetchone()
        return None if row is None else self.read(row)

    def store(self, db: Connection, records: Iterable[_Record], on_conflict: str = "") -> None:
        """Insert new records."""
        db.executemany(f"{self.insert} {on_conflict}", map(self.values, records))

    def values(self, record: _Record) -> list[Any]:
        """Return the values of a new record for `insert`."""
        values = ((getattr(record, field), is_json) for field, is_json in self._stored)
        return [json.dumps(value) if is_json and value is not None else value for value, is_json in values]


def _list_fields(record: type[Any]) -> list[str]:
    if dataclasses.is_dataclass(record):
        return [field.name for field in dataclasses.fields(record)]
    return list(getattr(record, "_fields", ()))


@cache
def _reader(kind: type[Any]) -> Callable[[Sequence[Any]], Any]:
    """Return what makes a record of a row, or a value of its only column."""
    fields = _list_fields(kind)
    hints = get_type_hints(kind) if fields else {}
    decoders = [(place, decode) for place, field in enumerate(fields) if (decode := _decoder(hints[field]))]

    def read(row: Sequence[Any]) -> Any:
        values = list(row)
        for place, decode in decoders:
            values[place] = decode(values[place])
        return kind(*values)

    return read


def _kind(hint: Any) -> Any:
    """Return the type of a field without None and without what it contains."""
    options = [option for option in get_args(hint) if option is not NoneType] if NoneType in get_args(hint) else [hint]
    return get_origin(options[0]) or options[0]


def _decoder(hint: Any) -> Callable[[Any], Any] | None:
    """Return what makes the value of a field from the value of a column; None if they are equal."""
    kind = _kind(hint)
    decode: Callable[[Any], Any]
    if kind is tuple:
        decode = lambda text: tuple(json.loads(text))  # noqa: E731 - one of several decoders
    elif kind is Mapping:
        decode = json.loads
    elif kind is bool:
        decode = bool
    elif isinstance(kind, type) and issubclass(kind, StrEnum):
        decode = _Members(kind).__getitem__
    else:
        return None
    return (lambda value: None if value is None else decode(value)) if NoneType in get_args(hint) else decode


class _Members(dict[str, StrEnum]):
    """The members of an enumeration by their values; looking one up is much faster than calling the class."""

    def __init__(self, kind: type[StrEnum]) -> None:
        super().__init__((str(member), member) for member in kind)
        self._kind = kind

    def __missing__(self, value: str) -> StrEnum:
        """Raise the class's ValueError, which the store reports as damage."""
        return self._kind(value)


# Rows are deleted; any other action is SQL that sets columns of the rows.
DELETE: Final = "DELETE"
RowKey = Sequence[Any]
# Returns whether a text quotes a purged one; the workspace of the text is None if it is unknown.
Quotes = Callable[[str | None, str], bool]


class Relation(NamedTuple):
    """How peers exchange the rows of a table, which relate memories.

    `key` are the expressions of the memory, the other memory and the name in the rows `r` of `source`; `chosen` is the
    condition for the JSON list of the memories, or of the names if `is_named`. `put` and `drop` write a relation with
    its key and its fields as named values, and with `seq`, `other_seq`, `older_seq` and `newer_seq`.
    """

    kind: str
    fields: tuple[str, ...]
    key: str
    source: str
    chosen: str
    put: tuple[str, ...]
    drop: str
    is_named: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """A table of a store's file.

    `text` may contain words of a memory. `memory` are the columns that name a memory, by its id, row number or text
    hash: the last word of the column says which. `erasure` is the action on the rows that name a purged memory, and on
    all rows if no column does. `quoting` maps columns that may quote a memory without naming it to the action on such
    rows.
    """

    name: str
    key: tuple[str, ...] = ("seq",)
    text: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    erasure: str | Callable[[Connection, Memory], object] = ""
    quoting: Mapping[str, str | Callable[[Connection, Sequence[int]], object]] = dataclasses.field(default_factory=dict)
    # How peers exchange the rows, apart from memories.
    replicated: Relation | None = None
    # Whether the rows are derived from the memories of one scope: they are also erased when a memory changes its scope.
    is_per_scope: bool = False
    # Whether the column `workspace` names the workspace that a row is about.
    has_workspace: bool = False
    # The name under which maintenance counts and deletes derived rows whose source is gone, and the condition for them;
    # without a condition, their source is the memory.
    orphans: str = ""
    orphaned: str = ""

    def erase(self, db: Connection, memory: Memory) -> None:
        """Erase what the rows that name a memory contain of it."""
        if callable(self.erasure):
            self.erasure(db, memory)
        elif self.erasure:
            chosen = " OR ".join(f"{column} = :{column.rpartition('_')[2]}" for column in self.memory) or "true"
            db.execute(
                self._act(self.erasure, chosen), {"seq": memory.seq, "id": memory.id, "hash": memory.content_hash}
            )

    def find_quotations(self, db: Connection, column: str, quotes: Quotes, word: str) -> list[RowKey]:
        """Return the keys of the rows with a quotation in a column."""
        workspace = "workspace" if self.has_workspace else "NULL"
        rows = db.execute(
            f"SELECT {column}, {workspace}, {', '.join(self.key)} FROM {self.name} "  # noqa: S608 - names of the code
            f"WHERE instr(lower({column}), ?) > 0",
            (word,),
        )
        return [key for text, workspace_id, *key in rows if quotes(workspace_id, text)]

    def erase_quotations(self, db: Connection, column: str, keys: Iterable[RowKey]) -> None:
        """Erase the quotations in a column of some rows."""
        action = self.quoting[column]
        if callable(action):
            action(db, [seq for (seq,) in keys])
        else:
            db.executemany(self._act(action, " AND ".join(f"{name} = ?" for name in self.key)), keys)

    @property
    def orphan_condition(self) -> str:
        """Return the condition for derived rows whose source is gone."""
        return self.orphaned or " OR ".join(is_gone(f"{self.name}.{column}") for column in self.memory)

    def _act(self, action: str, chosen: str) -> str:
        verb = f"DELETE FROM {self.name}" if action == DELETE else f"UPDATE {self.name} SET {action}"  # noqa: S608 - ditto
        return f"{verb} WHERE {chosen}"


def is_gone(column: str) -> str:
    """Return the condition that a column names a memory that does not exist, by row number."""
    return f"NOT EXISTS (SELECT 1 FROM memory WHERE memory.seq = {column})"  # noqa: S608 - a constant column
