"""Store what a person said about facts: a new value ends the value before it, a negation ends it without a new one.

A certain statement takes effect at once, in the audit trail and undoable. An uncertain one that contradicts the current
value becomes a candidate, which the inbox shows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from sqlite3 import Connection
from typing import Any, Final

from pipeline.features.capture.proposals import Proposal
from pipeline.features.capture.slots import Slot, find_slot
from pipeline.kernel.records import Draft, EdgeDraft, EdgeKind, FactKey, Filter, Kind, Memory, Outcome, Receipt, Scope
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.store import audit, changes, edges, facts, memories
from pipeline.kernel.store.audit import AuditAction
from pipeline.kernel.times import utc_now
from pipeline.text.names import is_same_fact
from pipeline.write.accept import write_all
from pipeline.write.fact_placement import end_at, fact_key
from pipeline.write.prepare import Prepared, prepare, prepare_fact
from pipeline.write.revise import archive_memory

ACTOR: Final = "capture"
# More facts than a person speaks about.
MAX_KNOWN: Final = 2000
MAX_WAITING: Final = 20
# The newest memories without a key that a new fact may supersede.
MAX_STATEMENTS: Final = 200


def list_known_values(db: Connection, scope: Scope, subject: str | None = None) -> Mapping[FactKey, Any]:
    """Return the current values of a scope's facts, of one subject or all."""
    current = facts.page(db, scope, subject, utc_now(), MAX_KNOWN, None)
    return {fact.key: fact.details.get("value") for fact in current if fact.key is not None}


def prepare_proposal(proposal: Proposal) -> Prepared:
    """Prepare what a proposal stores: its sentence, or the fact that the sentence sets."""
    slot, draft = proposal.slot, proposal.draft
    if slot is None or slot.value is None:
        return prepare(draft)
    fact = replace(draft, metadata={**draft.metadata, "said": draft.content}, scope=draft.scope or Scope(), details={})
    key = fact_key(slot.keys[0].subject, slot.keys[0].attribute)
    return replace(prepare_fact(key, slot.value, fact), is_certain=slot.is_certain)


def store_proposal(db: Connection, proposal: Proposal, prepared: Prepared, policy: WritePolicy) -> Receipt | None:
    """Store a proposal within a transaction; a statement about a fact sets or ends it.

    Return the receipt of a memory that was written.
    """
    slot = proposal.slot
    if slot is None:
        (receipt,) = write_all(db, [prepared], policy)
        return receipt
    if slot.value is not None:
        return _set_fact(db, prepared, policy)
    _end_facts(db, slot, proposal.draft, policy)
    return None


def _set_fact(db: Connection, prepared: Prepared, policy: WritePolicy) -> Receipt | None:
    memory = prepared.memory
    assert memory.key is not None
    assert memory.valid_from is not None
    holder = facts.find_valid(db, memory.key, memory.scope, memory.valid_from)
    waiting = [
        candidate
        for candidate in facts.list_waiting(db, memory.key, memory.scope, MAX_WAITING)
        if candidate.details.get("value") == memory.details.get("value")
    ]
    if not prepared.is_certain and holder is not None and holder.details.get("value") != memory.details.get("value"):
        if waiting:
            return None
        policy = replace(policy, suggest=True)
    (receipt,) = write_all(db, [prepared], policy)
    if receipt.outcome is Outcome.CREATED:
        _supersede_statements(db, memories.get(db, receipt.id))
    if receipt.replaced is not None:
        audit.add(db, memory.created_at, ACTOR, AuditAction.CLOSE, receipt.replaced, receipt.id)
    if prepared.is_certain and not policy.suggest:
        # What waited for review is said with certainty now.
        for candidate in waiting:
            archive_memory(db, candidate, memory.created_at)
    return receipt


def _supersede_statements(db: Connection, fact: Memory | None) -> None:
    """Mark earlier memories without a key that state another value of a new fact as superseded."""
    assert fact is not None
    superseded = [other for other, value in _list_statements(db, fact) if value != fact.details["value"]]
    for other in superseded:
        edges.add(db, fact.seq, EdgeKind.SUPERSEDES, other.seq, ACTOR, fact.created_at)
    if superseded:
        changes.append_link(db, EdgeKind.SUPERSEDES, fact.id, [other.id for other in superseded])


def _list_statements(db: Connection, fact: Memory) -> Iterator[tuple[Memory, Any]]:
    """Yield the earlier memories without a key that state a value of a fact, and the value."""
    assert fact.key is not None
    name = f"{fact.key.subject} {fact.key.attribute}"
    for other in memories.page(db, Filter(scope=fact.scope, kinds=(Kind.FACT,)), MAX_STATEMENTS, None):
        slot = None if other.pinned or other.occurred_at > fact.occurred_at else find_slot(other.content, {})
        if slot is not None and slot.value is not None:
            key = slot.keys[0]
            if is_same_fact(f"{key.subject} {key.attribute}", name):
                yield other, slot.value


def _end_facts(db: Connection, slot: Slot, draft: Draft, policy: WritePolicy) -> None:
    moment, scope, now = draft.occurred_at or utc_now(), draft.scope or Scope(), utc_now()
    ending = [fact for key in slot.keys if (fact := facts.find_valid(db, key, scope, moment)) is not None]
    if not ending or policy.incognito:
        return
    if not slot.is_certain or policy.suggest:
        _suggest_ending(db, draft, ending, policy)
        return
    for fact in ending:
        end_at(db, fact, moment, now)
        detail = {"until": fact.valid_to, **draft.metadata}
        audit.add(db, now, ACTOR, AuditAction.CLOSE, fact.id, detail=detail)
        # Otherwise what the fact superseded would be current again.
        for other, _ in list(_list_statements(db, fact)):
            archive_memory(db, other, now)
            audit.add(db, now, ACTOR, AuditAction.ARCHIVE, other.id, detail=dict(draft.metadata))
    changes.append(db, changes.CLOSE, [fact.id for fact in ending])


def _suggest_ending(db: Connection, draft: Draft, ending: list[Memory], policy: WritePolicy) -> None:
    """Let the sentence wait for review as a memory that contradicts the current values."""
    contradicted = tuple(EdgeDraft(EdgeKind.CONTRADICTS, fact.id) for fact in ending)
    write_all(db, [prepare(replace(draft, edges=contradicted))], replace(policy, suggest=True))
