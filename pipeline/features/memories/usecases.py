"""Memories: write, read, change, forget."""

from collections.abc import Collection, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, replace
from functools import partial
from sqlite3 import Connection

from pipeline.features.entities import store as entities
from pipeline.features.entities.store import LinkedEntity
from pipeline.features.purge.usecases import finish_purges
from pipeline.features.review import store as review
from pipeline.kernel.errors import NO_SUCH_MEMORY, Conflict, NotFound
from pipeline.kernel.records import (
    Draft,
    EdgeDraft,
    EdgeKind,
    Filter,
    HistoryEntry,
    Memory,
    Page,
    Receipt,
    Revision,
    Scope,
    Seen,
    Trust,
    page_of,
)
from pipeline.kernel.records.people import Role
from pipeline.kernel.store import audit, edges, history, memories, purges
from pipeline.kernel.store.edges import Edge
from pipeline.kernel.store.visibility import is_open_to, reaches, viewer_within
from pipeline.kernel.workspace import Workspace
from pipeline.recall.feedback import FeedbackWriter
from pipeline.text.personal_facts import USER
from pipeline.write import revise
from pipeline.write.accept import commit, write_all
from pipeline.write.move import finish_move, list_shown_history, move_memory
from pipeline.write.prepare import Prepared, prepare, prepare_batch
from pipeline.write.state import check_state

# Maximum seconds that a purge request waits; a worker finishes the rest.
FINISHED_WITHIN_S = 2.0


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A memory with its decision, edges, entities, history and causes."""

    memory: Memory
    admission: review.Decision | None
    edges: list[Edge]
    entities: list[LinkedEntity]
    history: list[HistoryEntry]
    chain: list[Memory]


@dataclass(frozen=True, slots=True)
class Edited:
    """A memory and its given importance before and after an edit; `entry` is the history entry of the earlier text."""

    before: Memory
    after: Memory
    given_before: float
    given_after: float
    entry: int | None


def write_memory(workspace: Workspace, draft: Draft) -> Receipt:
    """Store a memory durably; raise InvalidField for an invalid draft."""
    return _write(workspace, [prepare(draft)])[0]


def write_memories(workspace: Workspace, drafts: list[Draft]) -> list[Receipt]:
    """Store memories in one transaction, all or none; the error names an invalid draft by its index."""
    return _write(workspace, prepare_batch(drafts))


def _write(workspace: Workspace, prepared: Sequence[Prepared]) -> list[Receipt]:
    """Store prepared memories in the workspace or the personal store, which is created only for valid drafts."""
    policy = workspace.write_policy()
    prepared = [_assign_to_person(workspace, item) for item in prepared]
    of_person = [item.memory.is_of_person and workspace.personal_memory_enabled for item in prepared]
    personal = tuple(item for item, is_personal in zip(prepared, of_person, strict=True) if is_personal)
    own = tuple(item for item, is_personal in zip(prepared, of_person, strict=True) if not is_personal)
    if not personal:
        return commit(workspace.create(), own, policy)
    of_person_policy = workspace.personal_write_policy([name for item in personal for name in item.memory.sessions])
    with workspace.person.create().write() as db:
        there = iter(write_all(db, personal, of_person_policy))
        # Commits before the block around it. If that then fails, sending the batch again merges these memories.
        here = iter(commit(workspace.create(), own, policy) if own else ())
    return [next(there if is_personal else here) for is_personal in of_person]


def _assign_to_person(workspace: Workspace, item: Prepared) -> Prepared:
    """Give a fact about the user the personal scope, unless it has a scope or personal memory is off."""
    memory = item.memory
    is_about_user = memory.key is not None and memory.key.subject == USER and memory.scope == Scope()
    if not is_about_user or not (workspace.is_personal or workspace.personal_memory_enabled):
        return item
    return replace(item, memory=replace(memory, scope=workspace.personal_scope))


def check_open(workspace: Workspace, memory_id: str) -> None:
    """Raise NotFound for a private memory of another person."""
    if not workspace.exists:
        return
    with workspace.database.read() as db:
        memory = memories.get(db, memory_id)
    if memory is not None and not is_open_to(memory.scope, workspace.person_id):
        # The same error as for an unknown memory, so that nothing is revealed.
        raise NotFound(NO_SUCH_MEMORY)


def check_expected(workspace: Workspace, memory_id: str, expected: Collection[str]) -> None:
    """Raise PreconditionFailed unless a memory is in one of the expected states."""
    with workspace.database.read() as db:
        check_state(revise.get_existing(db, memory_id), expected)


def list_memories(workspace: Workspace, memory_filter: Filter, limit: int, before: int | None) -> Page[Memory]:
    """List memories, newest first; with the personal scope, those of the personal store come first."""
    person = workspace.personal_store
    if memory_filter.scope != workspace.personal_scope or person is None:
        return _list_own(workspace, memory_filter, limit, before)
    page = _list_own(person, memory_filter, limit, before)
    if page.next_cursor is not None or not workspace.exists:
        return page
    return Page([*page.items, *_list_own(workspace, memory_filter, limit, None).items])


def _list_own(workspace: Workspace, memory_filter: Filter, limit: int, before: int | None) -> Page[Memory]:
    with workspace.database.read() as db:
        page = memories.page(db, memory_filter, limit + 1, before)
    return page_of(page, limit, lambda memory: memory.seq)


def read_record(workspace: Workspace, memory_id: str) -> MemoryRecord:
    """Return a memory, active or archived, with its details; raise NotFound for an unknown memory."""
    with workspace.database.read() as db:
        memory = revise.get_existing(db, memory_id)
        return MemoryRecord(
            memory,
            review.find_decision(db, memory.id),
            revise.list_visible_edges(db, memory, workspace.person_id),
            entities.of(db, memory.seq),
            list_shown_history(memory, history.of(db, memory.seq), workspace.person_id),
            _read_chain(db, memory, workspace.person_id),
        )


def read_chain(workspace: Workspace, memory_id: str) -> list[Memory]:
    """Return the chain of causes and effects that contains a memory, the first cause first; empty if unknown."""
    with workspace.database.read() as db:
        return _read_chain(db, revise.get_existing(db, memory_id), workspace.person_id)


def _read_chain(db: Connection, memory: Memory, person_id: str | None) -> list[Memory]:
    seqs = edges.chain(db, memory.seq)
    memories_by_seq = memories.by_seqs(db, seqs)
    viewer = viewer_within(memory.scope, person_id)
    return [
        memories_by_seq[seq] for seq in seqs if seq in memories_by_seq and reaches(memories_by_seq[seq].scope, viewer)
    ]


def get_memory(workspace: Workspace, memory_id: str) -> Memory:
    """Return a memory; raise NotFound if it is unknown or private to another person."""
    with workspace.database.read() as db:
        memory = memories.get(db, memory_id)
    if memory is None or not is_open_to(memory.scope, workspace.person_id):
        raise NotFound("There is no memory with this id.")
    return memory


def edit(workspace: Workspace, memory_id: str, revision: Revision, expected: Collection[str] | None = None) -> Memory:
    """Change a memory in one of the expected states; old texts, tags and metadata stay in the history."""
    return revise.edit(workspace.database, memory_id, revision, expected=expected)


def edit_as_seen(workspace: Workspace, memory_id: str, revision: Revision, seen: Seen) -> Edited:
    """Change a memory and return the values that undo needs.

    Raises Conflict if another user changed a field of the revision since the caller read the memory.
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
    """Mark a memory as trusted; return it, and whether it was not trusted before."""
    with workspace.database.read() as db:
        before = revise.get_existing(db, memory_id)
    if before.trust is Trust.TRUSTED:
        return before, False
    return revise.edit(workspace.database, memory_id, Revision(trust=Trust.TRUSTED)), True


def unconfirm(workspace: Workspace, memory_id: str, since: str) -> Memory:
    """Undo a confirmation of a memory since a time."""
    return revise.unconfirm(workspace.database, memory_id, since)


def archive(workspace: Workspace, memory_id: str, expected: Collection[str] | None = None) -> Memory:
    """Archive a memory, which `restore` undoes; raise NotFound for an unknown memory."""
    return revise.archive(workspace.database, memory_id, expected)


def restore(workspace: Workspace, memory_id: str, expected: Collection[str] | None = None) -> Memory:
    """Undo an archive or a merge; raise Conflict if an active memory has the same text by now."""
    return revise.restore(workspace.database, memory_id, expected)


def move(workspace: Workspace, target: Workspace, memory_id: str) -> Receipt:
    """Move a memory to another workspace; raise Conflict if it is already there or cannot be stored."""
    if target.id == workspace.id:
        raise Conflict(f"This memory is already in workspace {target.id}.")
    return move_memory(workspace, target, memory_id)


def is_merged(workspace: Workspace, memory_id: str) -> bool:
    """Return whether a memory was merged into another one."""
    with workspace.database.read() as db:
        return audit.merge_of(db, memory_id) is not None


def purge(
    workspace: Workspace,
    feedback: FeedbackWriter,
    memory_id: str,
    expected: Collection[str] | None = None,
) -> None:
    """Delete a memory permanently, with memories merged into it or derived from it, its copies and its quotations.

    The first commit makes the purge durable. Copies in workspaces that the person may write to are deleted at once if
    possible, otherwise by a worker. Purging a memory twice changes nothing. Raises NotFound for a memory that never
    existed here.
    """
    feedback.drop_questions()
    # Finish an interrupted move first, so that the purge also deletes the moved copy.
    finish_move(workspace, memory_id)
    by = purges.OWNER
    if workspace.person_id is not None:
        by = purges.PurgeAuthority(
            workspace.person_id,
            tuple(sibling.id for sibling in workspace.list_siblings() if workspace.caller.may(sibling.id, Role.WRITER)),
        )
    try:
        revise.purge(workspace.database, memory_id, by, expected)
    except NotFound:
        if not _was_purged(workspace, memory_id):
            raise
    # Queue it behind pending hook runs, so that it also finds those.
    finishing = feedback.submit_logged("digest.purge", workspace.id, partial(finish_purges, workspace))
    wait([finishing], FINISHED_WITHIN_S)


def _was_purged(workspace: Workspace, memory_id: str) -> bool:
    for store in (workspace, workspace.person):
        if store.exists:
            with store.database.read() as db:
                if purges.was_purged(db, memory_id):
                    return True
    return False


def add_edge(workspace: Workspace, memory_id: str, edge: EdgeDraft) -> list[Edge]:
    """Add an edge to another memory; return all edges of the memory."""
    return revise.add_edge(workspace.database, memory_id, edge, workspace.person_id)


def remove_edge(workspace: Workspace, memory_id: str, kind: EdgeKind, to: str) -> list[Edge]:
    """Remove an edge; return the remaining ones."""
    return revise.remove_edge(workspace.database, memory_id, kind, to, workspace.person_id)
