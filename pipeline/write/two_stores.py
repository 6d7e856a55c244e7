"""What is written to two stores: a move, and a batch that is partly about the person.

Two files cannot commit together. The store that commits first records what the other still lacks, so whatever is
interrupted in between is finished: by the next attempt, or by a worker.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import TypeAdapter
from ulid import ULID

from pipeline.errors import Conflict, NotFound, StoreUnavailable
from pipeline.records import Receipt
from pipeline.records.write_policy import WritePolicy
from pipeline.store import changes, review, unfinished_writes
from pipeline.store.unfinished_writes import BATCH, MOVE
from pipeline.text.personal_facts import USER
from pipeline.times import parse
from pipeline.workspace import Workspace
from pipeline.write.accept import INCOGNITO, write_all
from pipeline.write.move import archive_moved_memory, claim, release, take_in
from pipeline.write.prepare import Prepared


@dataclass(frozen=True, slots=True)
class Part:
    """What of a batch goes to one store, and how it is taken in there."""

    store: str
    items: tuple[Prepared, ...]
    policy: WritePolicy


_PART = TypeAdapter(Part)
# The personal store itself knows what was purged.
_NOT_RECORDED = {"policy": {"is_purged"}}


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
        if unfinished_writes.find(db, MOVE, memory_id) is None:
            return None
    claimed, *_ = claim(workspace.database, memory_id, "")
    return move_memory(workspace, workspace.sibling(claimed.target), memory_id)


def write_to_both(workspace: Workspace, part: Part, personal: Part) -> tuple[list[Receipt], list[Receipt]]:
    """Store a batch in a workspace and in a personal store, all of it or nothing; return the receipts of both.

    Everything is checked before the first commit. Raises StoreUnavailable, which says so, where only the second commit
    failed: a worker makes up for it.
    """
    database, name, is_recorded = workspace.create(), str(ULID()), False
    try:
        with workspace.sibling(personal.store).create().write() as there:
            of_person = write_all(there, personal.items, personal.policy)
            stored = tuple(item for item, one in zip(personal.items, of_person, strict=True) if one.reason != INCOGNITO)
            # Ends before the block around it: this store commits first.
            with database.write() as db:
                receipts = write_all(db, part.items, part.policy)
                missing = Part(personal.store, stored, personal.policy)
                unfinished_writes.add(db, BATCH, name, _PART.dump_json(missing, exclude=_NOT_RECORDED).decode())
            is_recorded = True
    except StoreUnavailable as error:
        if not is_recorded:
            raise
        raise StoreUnavailable(
            f"The batch is stored, but its part about the person is not in {personal.store} yet: {error}. A worker "
            "adds it as soon as that store can be written. There is no need to send the batch again."
        ) from error
    with database.write() as db:
        unfinished_writes.drop(db, BATCH, name)
    return receipts, of_person


def finish_unfinished(workspace: Workspace) -> int:
    """Finish what was interrupted between the commits of two stores; return how many writes."""
    with workspace.database.read() as db:
        moves, batches = unfinished_writes.list_names(db, MOVE), unfinished_writes.list_names(db, BATCH)
    for memory_id in moves:
        try:
            finish_move(workspace, memory_id)
        except NotFound:
            # It was purged by a job, which no claim stops: nothing is left to move.
            release(workspace.database, memory_id)
        except Conflict as error:
            workspace.operations.record_error("move", str(error), workspace=workspace.id)
    for name in batches:
        _finish_batch(workspace, name)
    return len(moves) + len(batches)


def _finish_batch(workspace: Workspace, name: str) -> None:
    with workspace.database.read() as db:
        recorded = unfinished_writes.find(db, BATCH, name)
    if recorded is None:
        return
    part = _PART.validate_json(recorded)
    with workspace.sibling(part.store).create().write() as db:
        # What was decided about there has arrived: the batch was only not marked as finished.
        known = review.decisions_by_ids(db, [item.memory.id for item in part.items])
        missing = [
            item
            for item in part.items
            if item.memory.id not in known
            and not changes.is_purged_since(db, item.memory.id, parse(item.memory.created_at))
        ]
        write_all(db, missing, part.policy)
    with workspace.database.write() as db:
        unfinished_writes.drop(db, BATCH, name)


def combine(of_person: Sequence[bool], here: Sequence[Receipt], there: Sequence[Receipt]) -> list[Receipt]:
    """Return the receipts of both parts in the order of the batch."""
    own, personal = iter(here), iter(there)
    return [next(personal if belongs else own) for belongs in of_person]
