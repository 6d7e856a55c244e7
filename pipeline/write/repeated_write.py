"""Detect a write that is sent again: its client chose the id of the memory, and the id has a decision.

A client repeats a write whose answer was lost. The decision of the first write answers it, and nothing changes.
"""

from collections.abc import Iterable
from sqlite3 import Connection

from pipeline.features.review import store as review
from pipeline.features.review.store import Decision
from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.records import Memory, Outcome, Receipt
from pipeline.kernel.store import memories, purges
from pipeline.write.fact_placement import place_fact
from pipeline.write.prepare import Prepared

DELETED = "this memory was deleted permanently"


def find_receipt(db: Connection, item: Prepared, pending: Iterable[Decision]) -> Receipt | None:
    """Return the receipt of the first write with the client's id; None if there was none.

    `pending` are the decisions of this transaction that are not stored yet. Raises InvalidField for the id of another
    person's memory.
    """
    memory = item.memory
    if not item.has_client_id:
        return None
    stored = memories.get(db, memory.id)
    if stored is not None and stored.author != memory.author:
        raise InvalidField(FieldError(f"{item.loc}id", "is in use; choose another id"))
    if purges.was_purged(db, memory.id):
        return Receipt(memory.id, Outcome.REJECTED, reason=DELETED)
    decision = next((one for one in pending if one.id == memory.id), None) or review.find_decision(db, memory.id)
    if decision is None:
        # A memory that was moved here or that came from another device has no decision in this workspace.
        return None if stored is None else Receipt(memory.id, Outcome.CREATED)
    return _receipt_of(db, memory, decision)


def _receipt_of(db: Connection, memory: Memory, decision: Decision) -> Receipt:
    if decision.outcome is Outcome.MERGED:
        duplicate = _find_duplicate(db, memory)
        merged_into = memory.id if duplicate is None else duplicate.id
        return Receipt(merged_into, Outcome.MERGED, duplicate_of=None if duplicate is None else duplicate.id)
    reason = "; ".join(decision.reasons) if decision.outcome in (Outcome.REJECTED, Outcome.CANDIDATE) else None
    return Receipt(memory.id, decision.outcome, reason=reason)


def _find_duplicate(db: Connection, memory: Memory) -> Memory | None:
    """Return the memory that has the text of a merged write. Decisions do not record it."""
    if memory.key is not None:
        return place_fact(db, memory).same
    return memories.find_active_text(db, memory.scope, memory.content_hash)
