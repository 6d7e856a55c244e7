"""Move a memory to another workspace, or share a person's memory with the workspace and withdraw it again.

A move claims a memory, stores it there, then archives it here, so that no crash loses it. A claimed memory cannot be
changed or moved elsewhere. Any process that detects an interrupted claim completes it.

A shared memory keeps its id. Derived data follows: threads and pairs are computed again, and memories that jobs
derived from it while it was shared are deleted when it is withdrawn.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from sqlite3 import Connection

from pipeline.kernel.errors import Conflict, NotFound, StoreUnavailable
from pipeline.kernel.records import UNSTORED, HistoryEntry, Memory, Outcome, Receipt, Scope, ScopeKind
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.records.digestion import DIGESTION
from pipeline.kernel.records.people import owner_of
from pipeline.kernel.store import (
    audit,
    changes,
    derivations,
    duplicates,
    facts,
    history,
    memories,
    tables,
    unfinished_moves,
    work,
)
from pipeline.kernel.store.audit import AuditAction
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.unfinished_moves import require_unmoved
from pipeline.kernel.times import parse, utc_now
from pipeline.kernel.workspace import Workspace
from pipeline.text.memory_terms import memory_terms
from pipeline.text.personal_facts import USER
from pipeline.write.accept import WriteEffects, is_incognito, log_and_enqueue, write_moved_memory
from pipeline.write.prepare import Prepared
from pipeline.write.revise import archive_memory, edit_text, get_existing, purge_memory, restore_memory, undo_merge

MOVED = "moved"


@dataclass(frozen=True, slots=True)
class Claim:
    """The target workspace of a move, and the time of its start."""

    target: str
    at: str


def move_memory(workspace: Workspace, target: Workspace, memory_id: str) -> Receipt:
    """Move a memory to another workspace; raise Conflict where it is moved elsewhere, or cannot be stored there."""
    policy = target.write_policy()
    claimed, memory, earlier = claim(workspace.database, memory_id, target.id)
    if claimed.target != target.id:
        receipt = finish_move(workspace, memory_id)
        raise Conflict(f"It was being moved to {claimed.target}, and is there now as {receipt and receipt.id}.")
    try:
        if memory.key is not None and memory.key.subject == USER and target.is_personal:
            memory = replace(memory, scope=target.personal_scope)
        receipt = take_in(target.create(), memory, earlier, workspace.id, claimed, policy)
    except StoreUnavailable:
        # It may have arrived: the next attempt finds out.
        raise
    except Exception:
        release(workspace.database, memory_id)
        raise
    archive_moved_memory(workspace.database, memory_id, target.id, receipt.id)
    return receipt


def finish_move(workspace: Workspace, memory_id: str) -> Receipt | None:
    """Finish the move of a memory that was claimed and not moved yet; None where there is none."""
    with workspace.database.read() as db:
        if unfinished_moves.find(db, memory_id) is None:
            return None
    claimed, *_ = claim(workspace.database, memory_id, "")
    return move_memory(workspace, workspace.sibling(claimed.target), memory_id)


def finish_moves(workspace: Workspace) -> int:
    """Finish the moves that were interrupted between the commits of two stores; return their number."""
    with workspace.database.read() as db:
        moves = unfinished_moves.list_ids(db)
    for memory_id in moves:
        try:
            finish_move(workspace, memory_id)
        except NotFound:
            # It was purged by a job, which no claim stops: nothing is left to move.
            release(workspace.database, memory_id)
        except Conflict as error:
            workspace.operations.record_error("move", str(error), workspace=workspace.id)
    return len(moves)


def claim(database: Database, memory_id: str, target: str) -> tuple[Claim, Memory, list[HistoryEntry]]:
    """Claim a memory for a move; return the claim (possibly of an earlier attempt) and the memory with its history."""
    with database.write() as db:
        memory = get_existing(db, memory_id)
        earlier = unfinished_moves.find(db, memory_id)
        if earlier is None and memory.archived_at is not None:
            raise Conflict("This memory is archived. Restore it first.")
        made = Claim(target, utc_now()) if earlier is None else Claim(**json.loads(earlier))
        if earlier is None:
            unfinished_moves.add(db, memory_id, json.dumps(asdict(made)))
        return made, memory, history.of(db, memory.seq)


def release(database: Database, memory_id: str) -> None:
    """Release a claim: the memory stays here and can be changed again."""
    with database.write() as db:
        unfinished_moves.drop(db, memory_id)


def take_in(
    database: Database,
    memory: Memory,
    earlier: Sequence[HistoryEntry],
    origin: str,
    claimed: Claim,
    policy: WritePolicy,
) -> Receipt:
    """Store a memory of the workspace `origin` with its history; raise Conflict if it cannot be stored."""
    now = utc_now()
    item = Prepared(replace(memory, seq=UNSTORED, updated_at=now), memory_terms(memory))
    effects = WriteEffects()
    with database.write() as db:
        if _has_arrived(db, memory, origin, claimed):
            return Receipt(memory.id, Outcome.MERGED, duplicate_of=memory.id)
        if is_incognito(db, memory, policy):
            raise Conflict("Not stored: the target workspace or the session is incognito.")
        receipt = write_moved_memory(db, item, effects)
        log_and_enqueue(db, effects)
        if receipt.outcome is not Outcome.MERGED:
            stored = get_existing(db, receipt.id)
            for entry in earlier:
                history.add(db, stored.seq, entry.at, entry.event, entry.content, entry.detail)
            history.add(db, stored.seq, now, MOVED, None, {"from": origin})
    return receipt


def _has_arrived(db: Connection, memory: Memory, origin: str, claimed: Claim) -> bool:
    """Return whether an earlier attempt stored a memory here, even if it was changed or purged since."""
    if changes.is_purged_since(db, memory.id, parse(claimed.at)):
        return True
    arrived = memories.get(db, memory.id)
    entries = [] if arrived is None else history.of(db, arrived.seq)
    return any(
        entry.event == MOVED and entry.detail == {"from": origin} and entry.at >= claimed.at for entry in entries
    )


def archive_moved_memory(database: Database, memory_id: str, target: str, new_id: str) -> None:
    """Archive a memory that was stored in the workspace `target`, and end its claim."""
    now = utc_now()
    with database.write() as db:
        if unfinished_moves.find(db, memory_id) is None:
            # Another attempt has finished the same move.
            return
        unfinished_moves.drop(db, memory_id)
        memory = get_existing(db, memory_id)
        history.add(db, memory.seq, now, MOVED, None, {"to": target, "as": new_id})
        if memory.archived_at is None:
            archive_memory(db, memory, now)


# Share a memory with the workspace, and withdraw it

SHARED, WITHDRAWN = "shared", "withdrawn"
# The data directory's owner in the audit trail.
OWNER = "owner"


def share(database: Database, memory_id: str, by: str | None) -> Memory:
    """Share a memory with all users of the workspace; raise Conflict if it is shared already or cannot be shared."""
    with database.write() as db:
        memory = get_existing(db, memory_id)
        require_unmoved(db, memory.id)
        if memory.archived_at is not None or memory.candidate:
            raise Conflict("This memory is archived or waiting for review. Restore or accept it first.")
        _open(db, memory, memory.scope, by)
        return get_existing(db, memory_id)


def share_copy(database: Database, memory: Memory, by: str | None) -> Memory:
    """Share a copy of a memory of a personal store with a workspace."""
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
    """Withdraw a shared memory; return it, and the ids of the derived memories that were deleted.

    If it is a copy from a personal store, archive it, and archive its person's later duplicates too.
    """
    now = utc_now()
    with database.write() as db:
        memory = get_existing(db, memory_id)
        if memory.shared_from is None:
            raise Conflict("This memory is not shared.")
        scope = scope_before(memory)
        _leave_survivor(db, memory, now)
        _release_merged(db, memory, scope, now)
        same = None if memory.key is not None else memories.find_active_text(db, scope, memory.content_hash)
        if is_copy or same is not None:
            archive_memory(db, get_existing(db, memory.id), now)
        gone = rescope(db, get_existing(db, memory.id), scope, None, now)
        history.add(db, memory.seq, now, WITHDRAWN, None, {})
        for act in audit.of(db, memory.id, 100):
            if act.action is AuditAction.SHARE and act.undone_at is None:
                audit.mark_undone(db, act.id, now)
        return get_existing(db, memory_id), gone


def scope_before(memory: Memory) -> Scope:
    """Return the scope of a shared memory before it was shared."""
    kind, _, owner = (memory.shared_from or "").partition(":")
    return Scope(ScopeKind(kind), owner or None)


def _open(db: Connection, memory: Memory, before: Scope, by: str | None) -> None:
    now = utc_now()
    if memory.scope.kind is ScopeKind.WORKSPACE and memory.shared_from is not None:
        raise Conflict("This memory is already shared.")
    if memory.scope.kind is ScopeKind.WORKSPACE:
        raise Conflict("All users of the workspace can already see this memory.")
    if memory.scope.kind is ScopeKind.TASK:
        raise Conflict("Cannot share a task's memory: everyone who works on the task can already see it.")
    if memory.key is not None and facts.history(db, memory.key, Scope()):
        raise Conflict("The workspace already has a value of this fact. Set the new value there.")
    rescope(db, memory, Scope(), f"{before.kind}:{before.id or ''}", now)
    history.add(db, memory.seq, now, SHARED, None, {})
    audit.add(db, now, by or OWNER, AuditAction.SHARE, memory.id)


def _take_copy(db: Connection, memory: Memory) -> None:
    """Store a memory under its id, still owned by its person."""
    effects = WriteEffects()
    copy = replace(memory, seq=UNSTORED, updated_at=utc_now())
    receipt = write_moved_memory(db, Prepared(copy, memory_terms(memory)), effects)
    if receipt.outcome is Outcome.MERGED or receipt.id != memory.id:
        raise Conflict(f"The workspace already has this memory: {receipt.id}")
    log_and_enqueue(db, effects)


def follow_scope(db: Connection, before: Memory, now: Memory) -> list[str]:
    """Change the scope of data derived from a memory within a transaction; return the ids of deleted memories."""
    tables.erase_memory(db, now, tables.PER_SCOPE)
    work.add(db, [now.seq], DIGESTION, time.time())
    if before.scope.kind is not ScopeKind.WORKSPACE:
        # Memories that jobs derived from it so far are still private to its person.
        return []
    made = memories.by_seqs(db, derivations.list_derived_summaries(db, now.seq)).values()
    return [purged_id for derived in made if derived.scope == before.scope for purged_id in purge_memory(db, derived)]


def rescope(db: Connection, memory: Memory, scope: Scope, shared_from: str | None, now: str) -> list[str]:
    """Change the scope of a memory within a transaction; return the ids of the derived memories that were deleted.

    Raises Conflict if an active memory of that scope has exactly this text.
    """
    if memory.archived_at is None and memory.key is None:
        same = memories.find_active_text(db, scope, memory.content_hash)
        if same is not None and same.seq != memory.seq:
            raise Conflict(f"An active memory of that scope has exactly this text: {same.id}")
    memories.rescope(db, memory.seq, scope, shared_from, now)
    changes.append(db, changes.EDIT, [memory.id])
    return follow_scope(db, memory, get_existing(db, memory.id))


def _leave_survivor(db: Connection, memory: Memory, now: str) -> None:
    """Detach a memory from the survivor of its merge, whose history quotes it."""
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


def _release_merged(db: Connection, memory: Memory, scope: Scope, now: str) -> None:
    """Reactivate other people's memories that were merged into this one."""
    for merged in memories.list_merged_into(db, memory.seq):
        merge = audit.merge_of(db, merged.id)
        if merged.scope == scope or merge is None or merge.other_id != memory.id:
            continue
        if memories.find_active_text(db, merged.scope, merged.content_hash) is None:
            undo_merge(db, merge, merged, now)
        else:
            memories.archive(db, merged.seq, now)


def is_sharer(memory: Memory, person_id: str | None) -> bool:
    """Return whether a shared memory belonged to a person before it was shared."""
    return memory.shared_from is not None and owner_of(scope_before(memory).id) == person_id


def list_shown_history(memory: Memory, entries: list[HistoryEntry], person_id: str | None) -> list[HistoryEntry]:
    """Return the part of a memory's history that a person may see: if another person shared it, the part since then."""
    if memory.shared_from is None or is_sharer(memory, person_id):
        return entries
    last = max((position for position, entry in enumerate(entries) if entry.event == SHARED), default=0)
    return entries[last:]
