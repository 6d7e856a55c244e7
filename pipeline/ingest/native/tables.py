"""Read the memories that a tool keeps in a SQLite database: an item for each row."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from pipeline.errors import ForeignDatabaseUnreadable
from pipeline.ingest.fields import Known, Readings, Skipped, digest_of_json, read_item, text_of, time_of
from pipeline.ingest.native.drafts import NativeMemory, make_drafts, time_of_change
from pipeline.ingest.native.memory_stores import MemoryStore
from pipeline.records import Kind
from pipeline.store.foreign_database import Row, open_foreign_database, read_rows

_VERSION: Final = "native 1"
_KINDS: Final = {"decision": Kind.DECISION, "architecture": Kind.DECISION, "trade-off": Kind.DECISION}


class Table(NamedTuple):
    """A table, the columns to read, and a function from a row to its memory.

    The function returns None for a row of another project, and a reason for a row that is left out.
    """

    name: str
    columns: Sequence[str]
    read: Callable[[Row], NativeMemory | str | None]
    key: str = "id"


def read_tables(store: MemoryStore, known: Known, tables: Sequence[Table]) -> Readings:
    """Yield an item for each row of the tables that belongs to the store; the keys name the table and the row."""
    try:
        estimated_at = time_of_change(store.path.stat().st_mtime)
        for table in tables:
            yield from _read_table(store, known, table, estimated_at)
    except (OSError, ForeignDatabaseUnreadable) as error:
        # The key of the whole source: rows that were not read are not deleted ones.
        problem = error.reason if isinstance(error, ForeignDatabaseUnreadable) else f"cannot be read: {error.strerror}"
        yield Skipped(".", problem)


def _read_table(store: MemoryStore, known: Known, table: Table, estimated_at: str) -> Readings:
    for row in read_rows(store.path, table.name, table.columns):
        key = f"{table.name}:{row.get(table.key)}"
        memory = table.read(row)
        if isinstance(memory, str):
            yield Skipped(key, memory)
        elif memory is not None:
            digest = digest_of_json(_VERSION, {name: _plain(value) for name, value in row.items()})
            yield read_item(known, key, digest, make_drafts(store, store.origin, memory, estimated_at))


def list_parts(path: Any, table: str, column: str) -> list[str]:
    """Return the names in a column; none if the database cannot be read, which reading it reports."""
    try:
        with open_foreign_database(path) as db:
            values = db.values(table, column) if column in db.columns(table) else []
    except ForeignDatabaseUnreadable:
        return []
    return sorted({text for value in values if (text := text_of(value))})


def kind_of(nature: Any) -> Kind:
    """Return the kind of memory for a tool's type of observation."""
    return _KINDS.get(nature.lower(), Kind.FACT) if isinstance(nature, str) else Kind.FACT


def read_list(value: Any) -> list[str]:
    """Return the texts of a list that is stored as JSON."""
    try:
        parsed = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return []
    return [text for text in parsed if isinstance(text, str) and text.strip()] if isinstance(parsed, list) else []


def join_texts(*texts: Any) -> str:
    """Return the texts among some values as paragraphs, each once."""
    return "\n\n".join(dict.fromkeys(text.strip() for text in texts if isinstance(text, str) and text.strip()))


def list_points(points: Sequence[str]) -> str:
    """Return texts as a list."""
    return "\n".join(f"- {point}" for point in points)


def find_time(*values: Any) -> str | None:
    """Return the first time among some values."""
    times: Iterator[str | None] = map(time_of, values)
    return next(filter(None, times), None)


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value
