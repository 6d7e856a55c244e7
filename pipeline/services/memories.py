"""Memories: write, read, change, forget."""

from dataclasses import dataclass

from pipeline.anchors import is_stale
from pipeline.records import (
    Draft,
    EdgeDraft,
    EdgeKind,
    Filter,
    HistoryEntry,
    Memory,
    Page,
    Receipt,
    Revision,
    page_of,
)
from pipeline.records.line import SHORT_ID
from pipeline.services.workspace import Workspace
from pipeline.store import admissions, entities, history, memories
from pipeline.store.admissions import Decision
from pipeline.store.edges import Edge
from pipeline.store.entities import LinkedEntity
from pipeline.write import relate, revise
from pipeline.write.accept import commit
from pipeline.write.prepare import prepare, prepare_batch

__all__ = [
    "Edge",
    "MemoryRecord",
    "add_edge",
    "archive",
    "edit",
    "is_stale",
    "list_memories",
    "purge",
    "read_record",
    "remove_edge",
    "resolve_id",
    "restore",
    "write_memories",
    "write_memory",
]


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A memory and everything that is known of it."""

    memory: Memory
    admission: Decision | None
    edges: list[Edge]
    entities: list[LinkedEntity]
    history: list[HistoryEntry]


def write_memory(workspace: Workspace, draft: Draft) -> Receipt:
    """Store a memory durably; raise InvalidField for a draft that cannot be taken."""
    # Prepared first: a draft that cannot be taken must not make a workspace.
    prepared, policy = prepare(draft), workspace.write_policy()
    return commit(workspace.create(), [prepared], policy)[0]


def write_memories(workspace: Workspace, drafts: list[Draft]) -> list[Receipt]:
    """Store memories in one transaction, all or none; an invalid draft is named by its index."""
    prepared, policy = prepare_batch(drafts), workspace.write_policy()
    return commit(workspace.create(), prepared, policy)


def list_memories(workspace: Workspace, wanted: Filter, limit: int, before: int | None) -> Page[Memory]:
    """List memories, newest first."""
    with workspace.database.read() as db:
        found = memories.page(db, wanted, limit + 1, before)
    return page_of(found, limit, lambda memory: memory.seq)


def read_record(workspace: Workspace, memory_id: str) -> MemoryRecord:
    """Return a memory, archived or not, with everything that is known of it; raise NotFound where there is none."""
    with workspace.database.read() as db:
        memory = revise.existing(db, memory_id)
        return MemoryRecord(
            memory,
            admissions.of(db, memory.id),
            relate.visible_edges(db, memory),
            entities.of(db, memory.seq),
            history.of(db, memory.seq),
        )


def resolve_id(workspace: Workspace, given: str) -> str:
    """Return the id that is meant: what agents and people are shown is its end."""
    if len(given) != SHORT_ID:
        return given
    with workspace.database.read() as db:
        found = memories.ids_ending_in(db, given.upper())
    return found[0] if len(found) == 1 else given


def edit(workspace: Workspace, memory_id: str, revision: Revision) -> Memory:
    """Change a memory; a new text is digested again and the old one stays in the history."""
    return revise.edit(workspace.database, memory_id, revision)


def archive(workspace: Workspace, memory_id: str) -> Memory:
    """Archive a memory, which restoring it undoes; raise NotFound where there is none."""
    return revise.archive(workspace.database, memory_id)


def restore(workspace: Workspace, memory_id: str) -> Memory:
    """Undo an archive or a merge; raise Conflict when an active memory says the same by now."""
    return revise.restore(workspace.database, memory_id)


def purge(workspace: Workspace, memory_id: str) -> None:
    """Delete a memory for good, with what was merged into it or made of it."""
    revise.purge(workspace.database, memory_id)


def add_edge(workspace: Workspace, memory_id: str, edge: EdgeDraft) -> list[Edge]:
    """Say how a memory bears on another; return its edges."""
    return relate.draw(workspace.database, memory_id, edge)


def remove_edge(workspace: Workspace, memory_id: str, kind: EdgeKind, to: str) -> list[Edge]:
    """Take an edge back; return what is left."""
    return relate.erase(workspace.database, memory_id, kind, to)
