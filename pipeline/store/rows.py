"""Rows of queries as values and records: the fields of a record are the columns, in their order."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from sqlite3 import Connection
from types import NoneType
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

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
