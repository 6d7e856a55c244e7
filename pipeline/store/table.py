"""The declaration of a table: the columns that may contain text of a memory, and what a purge does with the rows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from sqlite3 import Connection
from typing import Any, Final, NamedTuple

# Rows are deleted; any other action is SQL that sets columns of the rows.
DELETE: Final = "DELETE"
RowKey = Sequence[Any]
# Returns whether a text quotes a purged one; the workspace of the text is None if it is unknown.
Quotes = Callable[[str | None, str], bool]


class MemoryKeys(NamedTuple):
    """The values by which rows name a memory; outside of its own store only the id."""

    id: str
    seq: int = 0
    hash: str = ""


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


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a store's file.

    `text` may contain words of a memory. `memory` are the columns that name a memory, by its id, row number or text
    hash: the last word of the column says which. `on_purge` is the action on the rows that name a purged memory, and on
    all rows if no column does. `quoting` maps columns that may quote a memory without naming it to the action on such
    rows.
    """

    name: str
    key: tuple[str, ...] = ("seq",)
    text: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    on_purge: str | Callable[[Connection, MemoryKeys], object] = ""
    quoting: Mapping[str, str | Callable[[Connection, Sequence[int]], object]] = field(default_factory=dict)
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

    def erase(self, db: Connection, memory: MemoryKeys) -> None:
        """Erase what the rows that name a memory contain of it."""
        if callable(self.on_purge):
            self.on_purge(db, memory)
        elif self.on_purge:
            chosen = " OR ".join(f"{column} = :{column.rpartition('_')[2]}" for column in self.memory) or "true"
            db.execute(self._act(self.on_purge, chosen), memory._asdict())

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
