"""Unfinished purges: deleted memories of which other files may still contain traces.

A purge records them in its own transaction, as values of the workspace, so that a crash or a locked file only delays
the rest. They contain ids and keyed hashes, never text. The worker's purge stage removes them when it is done.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from sqlite3 import Connection
from typing import Any

from config.paths import PERSONAL_WORKSPACE, is_personal
from pipeline.kernel.records import Memory
from pipeline.kernel.store import changes, memories, meta
from pipeline.kernel.store.rows import escape_like, has_row

_PREFIX = "purge:"


@dataclass(frozen=True, slots=True)
class PurgeAuthority:
    """Who purges: a person (None for the data directory's owner), and the workspaces that they may write to.

    Without `workspaces`: every workspace except other people's personal stores.
    """

    person_id: str | None = None
    workspaces: Sequence[str] | None = None

    def may_write(self, workspace_id: str) -> bool:
        """Return whether the purge may follow a memory to a workspace."""
        if self.workspaces is None:
            return not is_personal(workspace_id) or workspace_id == PERSONAL_WORKSPACE
        return workspace_id in self.workspaces


OWNER = PurgeAuthority()


@dataclass(frozen=True, slots=True)
class UnfinishedPurge:
    """A purge that must still be applied to other files.

    `memory_ids` are the purged memories and their copies in other workspaces; `hashes` are those of their texts.
    `marks` identify quotations of them.
    """

    memory_ids: Sequence[str]
    hashes: Sequence[str]
    marks: Mapping[str, Any]
    is_of_person: bool
    by: PurgeAuthority = OWNER


def note(db: Connection, memory_id: str, purge: UnfinishedPurge) -> None:
    """Record a purge within its transaction."""
    meta.put(db, f"{_PREFIX}{memory_id}", json.dumps(asdict(purge)))


def list_unfinished(db: Connection) -> dict[str, UnfinishedPurge]:
    """Return the unfinished purges by key."""
    records = {key: json.loads(meta.get(db, key) or "") for key in meta.list_keys(db, _PREFIX)}
    return {key: UnfinishedPurge(**{**record, "by": PurgeAuthority(**record["by"])}) for key, record in records.items()}


def remove(db: Connection, keys: Iterable[str]) -> None:
    """Remove purges that are finished."""
    for key in keys:
        meta.drop(db, key)


def was_purged(db: Connection, memory_id: str) -> bool:
    """Return whether a memory was purged from this store."""
    return has_row(db, "SELECT 1 FROM change WHERE op = ? AND memory_id = ? LIMIT 1", (changes.PURGE, memory_id))


def is_word_used(db: Connection, word: str) -> bool:
    """Return whether any memory contains a word."""
    sought = "SELECT 1 FROM memory WHERE lower(content) LIKE ? ESCAPE '\\' LIMIT 1"
    return has_row(db, sought, (f"%{escape_like(word)}%",))


def find_copies(db: Connection, memory_ids: Sequence[str]) -> list[Memory]:
    """Return the memories with some ids, and moved memories that had these ids before."""
    return memories.select(
        db,
        "id IN (SELECT value FROM json_each(?1)) OR seq IN (SELECT memory_seq FROM history WHERE event = 'moved' "
        "AND json_extract(detail, '$.as') IN (SELECT value FROM json_each(?1))) ORDER BY seq",
        (json.dumps(list(memory_ids)),),
    )
