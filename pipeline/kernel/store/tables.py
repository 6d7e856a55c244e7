"""The tables of each file of a store, and what applies to all of them: every purge uses these declarations."""

from collections.abc import Iterable, Mapping
from itertools import chain
from sqlite3 import Connection
from typing import Final

from pipeline.kernel.records import SHORT_ID, Memory
from pipeline.kernel.registry import find_extensions
from pipeline.kernel.store import (
    agent_sessions,
    audit,
    changes,
    conclusions,
    duplicates,
    edges,
    history,
    hook_runs,
    impressions,
    index_state,
    ingested,
    memories,
    operations,
    peers,
    people,
    refusals,
    runs,
    transcripts,
    turns,
    work,
)
from pipeline.kernel.store.rows import Quotes, RowKey, Table

# The tables of a workspace. The memory itself is last: triggers of the operation log look it up for the others.
WORKSPACE: Final[tuple[Table, ...]] = (
    # Features declare the single values that contain text.
    Table("meta", ("key",)),
    *chain.from_iterable(find_extensions("TABLES")),
    *edges.TABLES,
    *duplicates.TABLES,
    *impressions.TABLES,
    *index_state.TABLES,
    *ingested.TABLES,
    *work.TABLES,
    *history.TABLES,
    *agent_sessions.TABLES,
    *turns.TABLES,
    *conclusions.TABLES,
    *refusals.TABLES,
    *audit.TABLES,
    *runs.TABLES,
    *changes.TABLES,
    # The operation log reads these declarations itself. The commit of a purge deletes the operations about its memory.
    Table("operation", text=("fields",)),
    Table("touched", ("kind", "memory_id", "other_id", "name")),
    *memories.TABLES,
)
# The tables of a data directory outside of its workspaces, by the part that is moved to another store at once.
HOME_BY_PART: Final[Mapping[str, tuple[Table, ...]]] = {
    "peers": peers.TABLES,
    "transcripts": transcripts.TABLES,
    "people": people.TABLES,
    "operations": (*operations.TABLES, *hook_runs.TABLES),
}
# The rows that are computed again when a memory changes its scope.
PER_SCOPE: Final = tuple(table for table in WORKSPACE if table.is_per_scope)
HOME: Final = tuple(chain.from_iterable(HOME_BY_PART.values()))


# The rows of a table of which a column quotes a purged text.
Quotations = list[tuple[Table, str, list[RowKey]]]


def find_quotations(db: Connection, tables: Iterable[Table], quotes: Quotes, word: str = "") -> Quotations:
    """Find the rows that quote a text. `word` is in every quotation, in ASCII letters: only such rows are read."""
    return [
        (table, column, keys)
        for table in tables
        for column in table.quoting
        if (keys := table.find_quotations(db, column, quotes, word.lower()))
    ]


def erase_quotations(db: Connection, quotations: Quotations) -> None:
    """Erase quotations that were found."""
    for table, column, keys in quotations:
        table.erase_quotations(db, column, keys)


def erase_memory(db: Connection, memory: Memory, tables: Iterable[Table] = WORKSPACE) -> None:
    """Erase what names a memory in its store, the memory itself included."""
    for table in tables:
        table.erase(db, memory)


def erase_outside(
    db: Connection,
    memory_ids: Iterable[str],
    quotes: Quotes = lambda _workspace, _text: False,
    tables: Iterable[Table] = HOME,
) -> None:
    """Erase, outside of workspaces, what names some memories or quotes them."""
    short_ids = [memory_id[-SHORT_ID:] for memory_id in memory_ids]
    quotations = find_quotations(
        db,
        tables,
        lambda workspace, text: any(short_id in text for short_id in short_ids) or quotes(workspace, text),
    )
    erase_quotations(db, quotations)
