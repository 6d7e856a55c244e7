"""Move a memory to another workspace: claim it, store it there, then archive it here, so that no crash loses it.

A claimed memory cannot be changed or moved elsewhere. Any process that detects an interrupted claim completes it.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from sqlite3 import Connection

from pipeline.errors import Conflict, NotFound, StoreUnavailable
from pipeline.records import UNSTORED, HistoryEntry, Memory, Outcome, Receipt
from pipeline.records.write_policy import WritePolicy
from pipeline.store import changes, history, memories, unfinished_moves
from pipeline.store.database import Database
from pipeline.text.memory_terms import memory_terms
from pipeline.text.personal_facts import USER
from pipeline.times import parse, utc_now
from pipeline.workspace import Workspace
from pipeline.write.accept import (
    WriteEffects,
    is_incognito,
    log_and_enqueue,
    write_moved_memory,
)
from pipeline.write.prepare import Prepared
from pipeline.write.revise import archive_memory, get_existing

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
