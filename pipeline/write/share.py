"""Sharing: what is a person's own becomes the whole workspace's, and their own again when it is withdrawn.

A memory keeps its id. Whatever quotes it follows: arcs are found anew, pairs are compared anew, and what jobs made of
it while it was shared goes when it is withdrawn.
"""

import time
from dataclasses import replace
from sqlite3 import Connection

from pipeline.errors import Conflict
from pipeline.records import UNSTORED, Memory, Outcome, Scope, ScopeKind
from pipeline.records.people import PRIVATE
from pipeline.store import (
    arcs,
    audit,
    changes,
    derivations,
    duplicates,
    facts,
    history,
    memories,
    predictions,
    sharing,
    work,
)
from pipeline.store.audit import AuditAction
from pipeline.store.database import Database
from pipeline.store.unfinished import require_unmoved
from pipeline.text.tokens import memory_tokens
from pipeline.times import utc_now
from pipeline.write.accept import DIGESTION, WriteEffects, log_and_enqueue, write_moved
from pipeline.write.prepare import Prepared
from pipeline.write.revise import archive_memory, edit_text, get_existing, purge_memory, restore_memory, undo_merge

SHARED, WITHDRAWN = "shared", "withdrawn"
# Who the data directory's owner is in the audit trail.
OWNER = "owner"


def share(database: Database, memory_id: str, by: str | None) -> Memory:
    """Let everybody in the workspace see a memory; raise Conflict if they may, or where it cannot be."""
    with database.write() as db:
        memory = get_existing(db, memory_id)
        require_unmoved(db, memory.id)
        if memory.archived_at is not None or memory.candidate:
            raise Conflict("it is in the archive, or waits for review")
        _open(db, memory, memory.scope, by)
        return get_existing(db, memory_id)


def share_copy(database: Database, memory: Memory, by: str | None) -> Memory:
    """Let everybody in another workspace see a memory of a personal store, which keeps its own."""
    with database.write() as db:
        known = memories.get(db, memory.id)
        if known is None:
            _take_copy(db, memory)
            known = get_existing(db, memory.id)
        elif known.scope.kind is not ScopeKind.WORKSPACE:
            now = utc_now()
            edit_text(db, known, memory.content, now)
            if known.archived_at is not None:
                restore_memory(db, get_existing(db, known.id), now)
        _open(db, get_existing(db, known.id), memory.scope, by)
        return get_existing(db, memory.id)


def withdraw(database: Database, memory_id: str, *, is_copy: bool) -> tuple[Memory, list[str]]:
    """Let a shared memory be its person's own again; return it, and the ids of what was made of it and is gone.

    A copy of what a personal store holds goes to the archive, and so does what its person said once more meanwhile.
    """
    now = utc_now()
    with database.write() as db:
        memory = get_existing(db, memory_id)
        if memory.shared_from is None:
            raise Conflict("it is not shared")
        own = scope_before(memory)
        _leave_survivor(db, memory, now)
        _release_merged(db, memory, own, now)
        if is_copy or _says_it_too(db, memory, own):
            archive_memory(db, get_existing(db, memory.id), now)
        gone = _rescope(db, get_existing(db, memory.id), own, None, now)
        history.add(db, memory.seq, now, WITHDRAWN, None, {})
        for act in audit.of(db, memory.id, 100):
            if act.action is AuditAction.SHARE and act.undone_at is None:
                audit.mark_undone(db, act.id, now)
        return get_existing(db, memory_id), gone


def scope_before(memory: Memory) -> Scope:
    """Return the scope that a shared memory had before."""
    kind, _, owner = (memory.shared_from or "").partition(":")
    return Scope(ScopeKind(kind), owner or None)


def _open(db: Connection, memory: Memory, before: Scope, by: str | None) -> None:
    now = utc_now()
    if memory.scope.kind is ScopeKind.WORKSPACE and memory.shared_from is not None:
        raise Conflict("it is shared already")
    if memory.scope.kind is ScopeKind.WORKSPACE:
        raise Conflict("everybody in the workspace may see it already")
    if memory.scope.kind not in PRIVATE:
        raise Conflict("it is nobody's own: everybody sees it who works on its task")
    if memory.key is not None and facts.history(db, memory.key, Scope()):
        raise Conflict("the workspace has a value of this fact: set it there")
    _rescope(db, memory, Scope(), f"{before.kind}:{before.id or ''}", now)
    history.add(db, memory.seq, now, SHARED, None, {})
    audit.add(db, now, by or OWNER, AuditAction.SHARE, memory.id)


def _take_copy(db: Connection, memory: Memory) -> None:
    """Store a memory under its id, still its person's own."""
    effects = WriteEffects()
    copy = replace(memory, seq=UNSTORED, updated_at=utc_now())
    receipt = write_moved(db, Prepared(copy, memory_tokens(memory.content, memory.occurred_at)), effects)
    if receipt.outcome is Outcome.MERGED or receipt.id != memory.id:
        raise Conflict(f"the workspace knows it already: {receipt.id}")
    log_and_enqueue(db, effects)


def follow_scope(db: Connection, before: Memory, now: Memory) -> list[str]:
    """Let what quotes a memory follow it to another scope, within a transaction; return the ids of what goes."""
    arcs.purge(db, now.seq)
    duplicates.purge(db, now.seq)
    predictions.purge(db)
    work.add(db, [now.seq], DIGESTION, time.time())
    if before.scope.kind is not ScopeKind.WORKSPACE:
        # What jobs made of it so far is still its person's alone.
        return []
    made = memories.by_seqs(db, derivations.list_derived_summaries(db, now.seq)).values()
    return [gone for one in made if one.scope == before.scope for gone in purge_memory(db, one)]


def _says_it_too(db: Connection, memory: Memory, scope: Scope) -> bool:
    return memory.key is None and memories.find_active_text(db, scope, memory.content_hash) is not None


def _rescope(db: Connection, memory: Memory, scope: Scope, shared_from: str | None, now: str) -> list[str]:
    if memory.archived_at is None and memory.key is None:
        same = memories.find_active_text(db, scope, memory.content_hash)
        if same is not None and same.seq != memory.seq:
            raise Conflict(f"an active memory of that scope says exactly this: {same.id}")
    sharing.rescope(db, memory.seq, scope, shared_from, now)
    changes.append(db, changes.EDIT, [memory.id])
    return follow_scope(db, memory, get_existing(db, memory.id))


def _leave_survivor(db: Connection, memory: Memory, now: str) -> None:
    """Take a memory out of the one that speaks for it, whose history quotes it."""
    merge = audit.merge_of(db, memory.id) if memory.archived_at is not None else None
    survivor = None if merge is None or merge.other_id is None else memories.get(db, merge.other_id)
    if merge is None or survivor is None:
        return
    if memories.find_active_text(db, memory.scope, memory.content_hash) is None:
        undo_merge(db, merge, memory, now)
        return
    duplicates.take_back(db, survivor, memory, merge, now)
    audit.mark_undone(db, merge.id, now)
    memories.archive(db, memory.seq, now)


def _release_merged(db: Connection, memory: Memory, own: Scope, now: str) -> None:
    """Let what others said, and this memory spoke for, speak for itself again."""
    for one in memories.list_merged_into(db, memory.seq):
        merge = audit.merge_of(db, one.id)
        if one.scope == own or merge is None or merge.other_id != memory.id:
            continue
        if memories.find_active_text(db, one.scope, one.content_hash) is None:
            undo_merge(db, merge, one, now)
        else:
            memories.archive(db, one.seq, now)
