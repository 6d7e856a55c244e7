"""Admit prepared drafts and commit them as memories, in one transaction.

incognito? → sent again? → an echo? → an exact duplicate? → admitted? → place in time
→ insert, edges, tail, change log, work

No model and no network here: slow work is queued in the same transaction.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from sqlite3 import Connection
from typing import Any

from ulid import ULID

from pipeline.features.review import store as review
from pipeline.features.review.store import Decision
from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.kinds import confirms_all_fields, is_repeated_statement, render_rule, render_text
from pipeline.kernel.records import CAPTURED_TAG, Draft, EdgeKind, Kind, Memory, Outcome, Receipt, Source, Trust
from pipeline.kernel.records.access import DEFAULT_WRITE_POLICY, WritePolicy
from pipeline.kernel.records.digestion import DIGESTION
from pipeline.kernel.records.extraction import Disposition
from pipeline.kernel.store import (
    agent_sessions,
    changes,
    duplicates,
    edges,
    history,
    index_state,
    memories,
    meta,
    refusals,
    work,
)
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.visibility import is_open_to, reaches, viewer_within
from pipeline.write.admission import Admission, AdmissionVerdict, Offer, admit
from pipeline.write.fact_placement import FactPlacement, denies_fact, end_replaced_fact, overrides_trusted, place_fact
from pipeline.write.prepare import Prepared, is_echo_of, mark_branch, prepare
from pipeline.write.reindex import reindex
from pipeline.write.repeated_write import find_receipt

INCOGNITO = "incognito"
REFUSED = "rejected by a person before"


@dataclass(slots=True)
class WriteEffects:
    """The effects of a transaction, which are announced together at its end."""

    created: list[tuple[int, Prepared]] = field(default_factory=list)
    queued: list[int] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)
    # Memories as they were before another absorbed them.
    merged: list[Memory] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    superseded: list[str] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)


def accept(database: Database, draft: Draft, policy: WritePolicy = DEFAULT_WRITE_POLICY) -> Receipt:
    """Store one memory durably; raise InvalidField for a draft that cannot be taken."""
    return commit(database, [prepare(draft)], policy)[0]


def commit(
    database: Database, prepared: Sequence[Prepared], policy: WritePolicy = DEFAULT_WRITE_POLICY
) -> list[Receipt]:
    """Store prepared memories in one transaction, each as the policy decides."""
    with database.write() as db:
        return write_all(db, prepared, policy)


def write_all(db: Connection, prepared: Sequence[Prepared], policy: WritePolicy) -> list[Receipt]:
    """Store prepared memories within a transaction, as the policy decides."""
    effects = WriteEffects()
    receipts = [write_one(db, item, policy, effects) for item in prepared]
    log_and_enqueue(db, effects)
    return [
        replace(receipt, renamed_tags=item.renamed_tags) if item.renamed_tags else receipt
        for receipt, item in zip(receipts, prepared, strict=True)
    ]


def is_incognito(db: Connection, memory: Memory, policy: WritePolicy) -> bool:
    """Return whether a memory must not be stored."""
    if policy.incognito or agent_sessions.is_any_incognito(db, memory.sessions):
        return True
    # Capture may still read an earlier turn of the session.
    return memory.source is Source.AGENT and agent_sessions.is_any_turn_silent(db, memory.sessions)


def write_one(db: Connection, item: Prepared, policy: WritePolicy, effects: WriteEffects) -> Receipt:
    """Decide about a prepared memory within a transaction, at whose end the effects are announced."""
    if policy.author is not None:
        item = replace(item, memory=replace(item.memory, author=policy.author))
    item = mark_branch(item, policy.branch)
    memory = item.memory
    if is_incognito(db, memory, policy):
        # Do not even store the decision.
        return Receipt(memory.id, Outcome.REJECTED, reason=INCOGNITO)
    if (earlier := find_receipt(db, item, effects.decisions)) is not None:
        return earlier
    echo = _find_echo(db, item)
    if echo is not None and not reaches(echo.scope, viewer_within(memory.scope)):
        # A text that was shown to fewer people must be neither stored nor named.
        return _record_decision(effects, memory, Outcome.REJECTED, 0.0, ("repeats what was shown elsewhere",))
    if echo is not None:
        # An agent's echo is no independent confirmation: it reinforces nothing.
        return _record_decision(effects, memory, Outcome.MERGED, 1.0, ("repeats what was shown",), echo.id)
    if _is_refused(db, memory) or _is_purged_elsewhere(db, memory, policy):
        return _record_decision(effects, memory, Outcome.REJECTED, 0.0, (REFUSED,))
    return _write_text(db, item, policy, effects) if memory.key is None else _write_fact(db, item, policy, effects)


def _is_refused(db: Connection, memory: Memory) -> bool:
    """Return whether a person refused exactly this text before, and count the offer; the person may write it anyway."""
    refusal = refusals.find(db, memory.content_hash)
    if refusal is None or not _binds(db, refusal.memory_id, memory.author):
        return False
    if memory.source is Source.USER:
        refusals.take_back(db, refusal.memory_id)
        return False
    refusals.count_offer(db, refusal.memory_id, memory.created_at)
    return True


def _is_purged_elsewhere(db: Connection, memory: Memory, policy: WritePolicy) -> bool:
    """Return whether the author purged exactly this text in another workspace, and it is not in this workspace."""
    return (
        memory.source is not Source.USER
        and policy.is_purged(memory.content_hash)
        and memories.find_active_text(db, memory.scope, memory.content_hash) is None
    )


def _binds(db: Connection, refused_id: str, author: str | None) -> bool:
    """Return whether a refusal applies to this author, not only to the person who refused."""
    refused = memories.get(db, refused_id)
    return refused is None or is_open_to(refused.scope, author)


def _write_text(db: Connection, item: Prepared, policy: WritePolicy, effects: WriteEffects) -> Receipt:
    memory = item.memory
    duplicate = memories.find_active_text(db, memory.scope, memory.content_hash)
    if duplicate is None:
        return _admit(db, item, policy, effects, None)
    _draw_edges(db, duplicate.seq, item, None, effects)
    stronger = _reinforce(db, duplicate, replace(memory, trust=_inherit_trust(db, item)))
    effects.merged.append(duplicate)
    duplicates.compare_again(db, duplicate.seq)
    if duplicate.candidate:
        _review_again(db, duplicate, item, policy, effects)
    return _record_repetition(effects, memory, duplicate, stronger)


def write_moved_memory(db: Connection, item: Prepared, effects: WriteEffects) -> Receipt:
    """Store a memory that another workspace admitted, unchanged, within a transaction.

    It keeps its id unless the id is in use; an identical memory absorbs it.
    """
    memory = item.memory
    if memory.key is None:
        placement, same = None, memories.find_active_text(db, memory.scope, memory.content_hash)
    else:
        placement = place_fact(db, memory)
        same = placement.same
    if same is not None:
        _reinforce(db, same, memory)
        effects.merged.append(same)
        return Receipt(same.id, Outcome.MERGED, duplicate_of=same.id)
    if placement is not None and not memory.candidate:
        end_replaced_fact(db, placement, memory.updated_at)
        memory = placement.memory
    if memories.get(db, memory.id) is not None:
        memory = replace(memory, id=str(ULID()))
    outcome = _store(db, replace(item, memory=memory), placement, effects)
    return Receipt(memory.id, outcome)


def _write_fact(db: Connection, item: Prepared, policy: WritePolicy, effects: WriteEffects) -> Receipt:
    placement = place_fact(db, item.memory)
    if placement.same is not None:
        # Apply immediately: the next item of the batch may be older than this repetition.
        stronger = _reinforce(db, placement.same, item.memory)
        effects.merged.append(placement.same)
        return _record_repetition(effects, item.memory, placement.same, stronger)
    receipt = _admit(db, item, policy, effects, placement)
    if receipt.outcome is not Outcome.CREATED or placement.replaced is None:
        return receipt
    return replace(receipt, replaced=placement.replaced.id)


def _admit(
    db: Connection, item: Prepared, policy: WritePolicy, effects: WriteEffects, placement: FactPlacement | None
) -> Receipt:
    memory = item.memory
    admission = _judge_offer(db, item, policy, placement)
    if admission.verdict is AdmissionVerdict.REJECTED:
        return _record_decision(effects, memory, Outcome.REJECTED, admission.score, admission.reasons)
    candidate = policy.suggest or admission.verdict is AdmissionVerdict.CANDIDATE
    if placement is not None and not candidate:
        end_replaced_fact(db, placement, memory.created_at)
        memory = placement.memory
    trust = _inherit_trust(db, item)
    if candidate or trust is not memory.trust:
        memory = replace(memory, candidate=candidate, trust=trust)
    if memory is not item.memory:
        item = replace(item, memory=memory)
    outcome = _store(db, item, placement, effects)
    return _record_decision(effects, memory, outcome, admission.score, admission.reasons)


def _store(db: Connection, item: Prepared, placement: FactPlacement | None, effects: WriteEffects) -> Outcome:
    """Insert a memory that was admitted or that awaits review."""
    candidate = item.memory.candidate
    seq = memories.insert(db, item.memory)
    if item.memory.anchor is not None and item.memory.anchor.checkout is not None:
        meta.note(db, meta.CHECKOUT, item.memory.anchor.checkout)
    _draw_edges(db, seq, item, placement if not candidate else None, effects)
    # A candidate is digested, so that its duplicates are detected, but no search finds it before it is accepted.
    if candidate:
        effects.queued.append(seq)
        effects.candidates.append(item.memory.id)
        return Outcome.CANDIDATE
    effects.created.append((seq, item))
    return Outcome.CREATED


def _judge_offer(db: Connection, item: Prepared, policy: WritePolicy, placement: FactPlacement | None) -> Admission:
    memory = item.memory
    contradicts = not item.is_certain and (
        denies_fact(db, memory.content, memory.source, memory.created_at)
        if placement is None
        else overrides_trusted(placement, memory.source)
    )
    # A person's own words that contradict a fact wait for review, also where other doubtful memories are rejected;
    # so does a memory whose extractor asks for it.
    contradicts_in_own_words = contradicts and memory.source is Source.AMBIENT and CAPTURED_TAG in memory.tags
    review_needed = policy.review or contradicts_in_own_words or item.extraction.disposition is Disposition.REVIEW
    repeats = 0 if memory.source is Source.USER else review.count_rejections(db, memory.content_hash)
    return admit(_offer(item, repeats, contradicts=contradicts), review=review_needed)


def _offer(item: Prepared, repeats: int, *, contradicts: bool) -> Offer:
    memory = item.memory
    return Offer(
        memory.content,
        memory.kind,
        memory.source,
        memory.scope,
        item.importance,
        item.redactions,
        repeats,
        contradicts,
        item.extraction,
    )


def _record_decision(
    effects: WriteEffects,
    memory: Memory,
    outcome: Outcome,
    score: float,
    reasons: tuple[str, ...],
    duplicate_id: str | None = None,
) -> Receipt:
    turned_away = memory.content_hash if outcome is Outcome.REJECTED else None
    effects.decisions.append(
        Decision(memory.id, memory.created_at, outcome, score, reasons, memory.source, memory.kind, turned_away)
    )
    reason = "; ".join(reasons) if outcome in (Outcome.REJECTED, Outcome.CANDIDATE) else None
    return Receipt(duplicate_id or memory.id, outcome, duplicate_of=duplicate_id, reason=reason)


def _record_repetition(
    effects: WriteEffects, memory: Memory, duplicate: Memory, stronger: Mapping[str, Any]
) -> Receipt:
    receipt = _record_decision(effects, memory, Outcome.MERGED, 1.0, ("already stored",), duplicate.id)
    return replace(receipt, kept=stronger or None)


def _find_echo(db: Connection, item: Prepared) -> Memory | None:
    """Return the first of the memories that a text repeats, None if the text says anything else."""
    echoed = []
    for echo in item.echoes:
        meant = (
            memory
            for memory in memories.list_ending_in(db, echo.short_id)
            if any(is_echo_of(echo, text) for text in (memory.content, render_text(memory), render_rule(memory)))
        )
        if (first := next(meant, None)) is None:
            return None
        echoed.append(first)
    return echoed[0] if echoed else None


def _review_again(
    db: Connection, duplicate: Memory, item: Prepared, policy: WritePolicy, effects: WriteEffects
) -> None:
    """Admit a candidate that was offered often enough, unless a person reviews all memories."""
    if policy.suggest:
        return
    memory = item.memory
    contradicts = denies_fact(db, memory.content, memory.source, memory.created_at)
    offer = _offer(item, duplicate.merge_count + 1, contradicts=contradicts)
    if admit(offer, review=policy.review).verdict is AdmissionVerdict.ACTIVE:
        memories.update(db, duplicate.seq, {"candidate": 0}, item.memory.created_at)
        accepted = replace(item, memory=replace(item.memory, id=duplicate.id))
        effects.created.append((duplicate.seq, accepted))


def _inherit_trust(db: Connection, item: Prepared) -> Trust:
    """Return the trust of a memory: anything derived from evidence is evidence."""
    sources = [memories.get(db, edge.to) for edge in item.edges if edge.kind is EdgeKind.DERIVED_FROM]
    hearsay = any(source is not None and source.trust is Trust.EVIDENCE for source in sources)
    return Trust.EVIDENCE if hearsay else item.memory.trust


def _draw_edges(
    db: Connection, seq: int, item: Prepared, placement: FactPlacement | None, effects: WriteEffects
) -> None:
    memory = item.memory
    for number, edge in enumerate(item.edges):
        other = memories.get(db, edge.to)
        if other is None or other.seq == seq or not reaches(other.scope, viewer_within(memory.scope)):
            message = "does not name a memory in the reach of this memory"
            raise InvalidField(FieldError(f"{item.loc}edges.{number}.to", message))
        is_new = edges.add(db, seq, edge.kind, other.seq, memory.source, memory.created_at)
        if is_new and edge.kind is EdgeKind.SUPERSEDES:
            effects.superseded.append(other.id)
    if placement is not None and placement.replaced is not None:
        edges.add(db, seq, EdgeKind.SUPERSEDES, placement.replaced.seq, "facts", memory.created_at)
        effects.ended.append(placement.replaced.id)


def log_and_enqueue(db: Connection, effects: WriteEffects) -> None:
    """Log the effects of a transaction and queue its work."""
    if effects.created:
        first = changes.append(db, changes.CREATE, [item.memory.id for _, item in effects.created])
        for number, (seq, item) in enumerate(effects.created, start=first):
            index_state.put_tokens(db, seq, item.tokens, number)
    for op, memory_ids in (
        (changes.CANDIDATE, effects.candidates),
        (changes.CLOSE, effects.ended),
        (changes.SUPERSEDE, effects.superseded),
    ):
        if memory_ids:
            changes.append(db, op, memory_ids)
    work.add(db, [*(seq for seq, _ in effects.created), *effects.queued], DIGESTION, time.time())
    # The change log must name a memory's creation before its other changes.
    if effects.merged:
        changes.append(db, changes.MERGE, [memory.id for memory in effects.merged])
        for memory in effects.merged:
            reindex(db, memory)
    review.add_decisions(db, effects.decisions)


def _reinforce(db: Connection, duplicate: Memory, memory: Memory) -> dict[str, Any]:
    """Count a repetition; return the kept value of each standing field in which it differs."""
    tags = tuple(dict.fromkeys((*duplicate.tags, *memory.tags)))
    # An agent may only repeat what it read. A person who repeats it confirms it, but not fields that were never
    # stated.
    vouched = memory.source is Source.USER and memory.trust is Trust.TRUSTED
    confirmed = (vouched or is_repeated_statement(memory, duplicate)) and confirms_all_fields(memory, duplicate)
    memories.reinforce(
        db, duplicate.seq, importance=memory.importance, confirmed=confirmed, tags=tags, at=memory.created_at
    )
    detail = {
        "source": memory.source,
        "kind": memory.kind,
        "session_id": memory.session_id,
        "occurred_at": memory.occurred_at,
        "tags": memory.tags,
        "metadata": memory.metadata,
    }
    history.add(db, duplicate.seq, memory.created_at, "merged", None, detail)
    return duplicates.strengthen(db, _retype(db, duplicate, memory), memory, memory.created_at)


def _retype(db: Connection, duplicate: Memory, memory: Memory) -> Memory:
    """Turn a fact that a person repeats as a lesson into that lesson: `fact` is what a text is without a kind."""
    if (duplicate.kind, memory.kind, memory.source) != (Kind.FACT, Kind.LESSON, Source.USER):
        return duplicate
    values: dict[str, Any] = {"kind": memory.kind, "tier": memory.tier, "details": memory.details}
    memories.update(db, duplicate.seq, values, memory.created_at)
    return replace(duplicate, **values)
