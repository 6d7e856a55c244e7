"""Memories: write, read, change, forget."""

from dataclasses import dataclass

from pipeline.anchors import is_stale
from pipeline.errors import Conflict, NotFound
from pipeline.kinds import render_text
from pipeline.records import (
    SHORT_ID,
    Draft,
    EdgeDraft,
    EdgeKind,
    Filter,
    HistoryEntry,
    Memory,
    Page,
    Receipt,
    Revision,
    Seen,
    Trust,
    page_of,
)
from pipeline.services.workspace import Workspace
from pipeline.store import audit, entities, history, memories, review
from pipeline.store.edges import Edge
from pipeline.store.entities import LinkedEntity
from pipeline.store.review import Decision
from pipeline.text.normalize import normalize_id
from pipeline.write import revise
from pipeline.write.accept import commit
from pipeline.write.fields import resolve_scope
from pipeline.write.move import put_away, take_in
from pipeline.write.prepare import prepare, prepare_batch
from pipeline.write.revise import text_mark

__all__ = ["Edge", "is_stale", "normalize_id", "render_text", "resolve_scope", "text_mark"]


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A memory and everything that is known of it."""

    memory: Memory
    admission: Decision | None
    edges: list[Edge]
    entities: list[LinkedEntity]
    history: list[HistoryEntry]


@dataclass(frozen=True, slots=True)
class Edited:
    """A memory and its given importance before and after an edit; `entry` of the history holds the earlier text."""

    before: Memory
    after: Memory
    given_before: float
    given_after: float
    entry: int | None


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
        memory = revise.get_existing(db, memory_id)
        return MemoryRecord(
            memory,
            review.find_decision(db, memory.id),
            revise.list_visible_edges(db, memory),
            entities.of(db, memory.seq),
            history.of(db, memory.seq),
        )


def get_memory(workspace: Workspace, memory_id: str) -> Memory:
    """Return a memory; raise NotFound where there is none."""
    with workspace.database.read() as db:
        memory = memories.get(db, memory_id)
    if memory is None:
        raise NotFound("There is no memory of this id.")
    return memory


def resolve_id(workspace: Workspace, given: str) -> str:
    """Return the id that is meant: what agents and people are shown is its end."""
    if len(given) != SHORT_ID:
        return given
    with workspace.database.read() as db:
        found = memories.list_ids_ending_in(db, given.upper())
    return found[0] if len(found) == 1 else given


def edit(workspace: Workspace, memory_id: str, revision: Revision) -> Memory:
    """Change a memory; a new text is digested again and the old one stays in the history."""
    return revise.edit(workspace.database, memory_id, revision)


def edit_as_seen(workspace: Workspace, memory_id: str, revision: Revision, seen: Seen) -> Edited:
    """Change a memory unless somebody else did since it was seen, and return what is needed to take that back.

    Raises Conflict when a field of the revision is neither as it was seen nor as it shall be.
    """
    with workspace.database.read() as db:
        before = revise.get_existing(db, memory_id)
        given_before = memories.get_given_importance(db, before.seq)
    after = before if revision == Revision() else revise.edit(workspace.database, memory_id, revision, seen)
    with workspace.database.read() as db:
        given_after = memories.get_given_importance(db, after.seq)
        last = history.page(db, after.seq, 1, None) if after.content != before.content else []
    return Edited(before, after, given_before, given_after, last[0][0] if last else None)


def confirm(workspace: Workspace, memory_id: str) -> tuple[Memory, bool]:
    """Let a memory speak as a rule; return it, and whether nobody vouched for it before."""
    with workspace.database.read() as db:
        before = revise.get_existing(db, memory_id)
    if before.trust is Trust.TRUSTED:
        return before, False
    return revise.edit(workspace.database, memory_id, Revision(trust=Trust.TRUSTED)), True


def unconfirm(workspace: Workspace, memory_id: str, since: str) -> Memory:
    """Take back that a person vouched for a memory since a moment."""
    return revise.unconfirm(workspace.database, memory_id, since)


def archive(workspace: Workspace, memory_id: str) -> Memory:
    """Archive a memory, which restoring it undoes; raise NotFound where there is none."""
    return revise.archive(workspace.database, memory_id)


def restore(workspace: Workspace, memory_id: str) -> Memory:
    """Undo an archive or a merge; raise Conflict when an active memory says the same by now."""
    return revise.restore(workspace.database, memory_id)


def move(workspace: Workspace, target: Workspace, memory_id: str) -> Receipt:
    """Move a memory to another workspace; raise Conflict where it is there already or cannot be stored."""
    if target.id == workspace.id:
        raise Conflict(f"it is in {target.id} already")
    # Read first: what cannot be moved must not make a workspace.
    with workspace.database.read() as db:
        memory = revise.get_existing(db, memory_id)
        earlier = history.of(db, memory.seq)
    if memory.archived_at is not None:
        raise Conflict("it is in the archive; restore it first")
    policy = target.write_policy()
    receipt = take_in(target.create(), memory, earlier, workspace.id, policy)
    put_away(workspace.database, memory_id, target.id, receipt.id)
    return receipt


def is_merged(workspace: Workspace, memory_id: str) -> bool:
    """Tell whether another memory speaks for one."""
    with workspace.database.read() as db:
        return audit.merge_of(db, memory_id) is not None


def purge(workspace: Workspace, memory_id: str) -> None:
    """Delete a memory for good, with what was merged into it or made of it."""
    revise.purge(workspace.database, memory_id)


def add_edge(workspace: Workspace, memory_id: str, edge: EdgeDraft) -> list[Edge]:
    """Say how a memory bears on another; return its edges."""
    return revise.add_edge(workspace.database, memory_id, edge)


def remove_edge(workspace: Workspace, memory_id: str, kind: EdgeKind, to: str) -> list[Edge]:
    """Take an edge back; return what is left."""
    return revise.remove_edge(workspace.database, memory_id, kind, to)
