"""The admission of memories: from prepared drafts to acknowledged memories, in one transaction.

    off the record? → an echo? → an exact twin? → admitted? → place in time → insert, edges, tail, change log, work

No model and no network in here: what is slow is queued as work in the same transaction.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from sqlite3 import Connection

from pipeline.errors import FieldError, InvalidField
from pipeline.kinds import told
from pipeline.records import Draft, EdgeKind, Memory, Outcome, Receipt, Source, Stage, Trust
from pipeline.store import admissions, changes, edges, history, incognito, memories, tail, work
from pipeline.store.admissions import Decision
from pipeline.store.database import Database
from pipeline.store.memories import NewMemory
from pipeline.store.visibility import reaches, viewer_within
from pipeline.write.echo import Echo, is_echo_of
from pipeline.write.keyed import Place, denies_fact, end_replaced, find_place, overrides_trusted
from pipeline.write.policy import Admission, Offer, Verdict, admit
from pipeline.write.prepare import Prepared, prepare, prepare_batch

DIGESTION = (Stage.EMBED, Stage.ENTITIES)
OFF_THE_RECORD = "off the record"


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """How a workspace takes memories in: whether doubtful ones wait for review, and whether any are stored at all."""

    review: bool = False
    incognito: bool = False


@dataclass(slots=True)
class Ledger:
    """What a transaction did so far, to be announced together at its end."""

    created: list[tuple[int, Prepared]] = field(default_factory=list)
    queued: list[int] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)


def accept(database: Database, draft: Draft, policy: WritePolicy = WritePolicy()) -> Receipt:
    """Store one memory durably; raise InvalidField for a draft that cannot be taken."""
    return commit(database, [prepare(draft)], policy)[0]


def accept_batch(database: Database, drafts: Sequence[Draft], policy: WritePolicy = WritePolicy()) -> list[Receipt]:
    """Store memories in one transaction, all or none; an invalid draft is named by its index."""
    return commit(database, prepare_batch(drafts), policy)


def commit(database: Database, prepared: Sequence[Prepared], policy: WritePolicy = WritePolicy()) -> list[Receipt]:
    """Store prepared memories in one transaction, each as the policy decides."""
    ledger = Ledger()
    with database.write() as db:
        receipts = [take(db, item, policy, ledger) for item in prepared]
        announce(db, ledger)
    return receipts


def off_the_record(db: Connection, memory: NewMemory, policy: WritePolicy) -> bool:
    """Tell whether nothing of a memory may be stored."""
    return policy.incognito or (memory.session_id is not None and incognito.since(db, memory.session_id) is not None)


def take(db: Connection, item: Prepared, policy: WritePolicy, ledger: Ledger) -> Receipt:
    """Decide about one prepared memory within a transaction, at whose end the ledger is announced."""
    memory = item.memory
    if off_the_record(db, memory, policy):
        # Not even the decision is kept.
        return Receipt(memory.id, Outcome.REJECTED, reason=OFF_THE_RECORD)
    echoed = _echoed(db, item)
    if echoed is not None and not reaches(echoed.scope, viewer_within(memory.scope)):
        # What was shown to fewer is neither told on nor named.
        return _decided(ledger, memory, Outcome.REJECTED, 0.0, ("repeats what was shown elsewhere",))
    if echoed is not None:
        # What an agent was shown is no second witness: it reinforces nothing.
        return _decided(ledger, memory, Outcome.MERGED, 1.0, ("repeats what was shown",), echoed.id)
    if memory.key is not None:
        return _take_fact(db, item, policy, ledger)
    twin = memories.find_active_text(db, memory.scope, memory.content_hash)
    if twin is None:
        return _admit(db, item, policy, ledger, None)
    _draw_edges(db, twin.seq, item, None, ledger)
    _reinforce(db, twin, replace(memory, trust=_inherited(db, item)))
    ledger.merged.append(twin.id)
    if twin.candidate:
        _review_again(db, twin, item, policy, ledger)
    return _decided(ledger, memory, Outcome.MERGED, 1.0, ("says what is known",), twin.id)


def _take_fact(db: Connection, item: Prepared, policy: WritePolicy, ledger: Ledger) -> Receipt:
    place = find_place(db, item.memory)
    if place.same is not None:
        # At once: what the same batch tells next may be older than this repetition.
        _reinforce(db, place.same, item.memory)
        ledger.merged.append(place.same.id)
        return _decided(ledger, item.memory, Outcome.MERGED, 1.0, ("says what is known",), place.same.id)
    receipt = _admit(db, item, policy, ledger, place)
    if receipt.outcome is not Outcome.CREATED or place.replaced is None:
        return receipt
    return replace(receipt, replaced=place.replaced.id)


def _admit(db: Connection, item: Prepared, policy: WritePolicy, ledger: Ledger, place: Place | None) -> Receipt:
    memory = item.memory
    admission = _admission(db, item, policy, place)
    if admission.verdict is Verdict.REJECTED:
        return _decided(ledger, memory, Outcome.REJECTED, admission.score, admission.reasons)
    candidate = admission.verdict is Verdict.CANDIDATE
    if place is not None and not candidate:
        end_replaced(db, place, memory.created_at)
        memory = place.memory
    memory = replace(memory, candidate=candidate, trust=_inherited(db, item))
    seq = memories.insert(db, memory)
    _draw_edges(db, seq, item, place if not candidate else None, ledger)
    # A candidate is digested, so that its doubles are found, but no word of it can be found by before somebody agreed.
    if candidate:
        ledger.queued.append(seq)
    else:
        ledger.created.append((seq, replace(item, memory=memory)))
    outcome = Outcome.CANDIDATE if candidate else Outcome.CREATED
    return _decided(ledger, memory, outcome, admission.score, admission.reasons)


def _admission(db: Connection, item: Prepared, policy: WritePolicy, place: Place | None) -> Admission:
    memory = item.memory
    contradicts = (
        denies_fact(db, memory.content, memory.source, memory.created_at)
        if place is None
        else overrides_trusted(place, memory.source)
    )
    repeats = 0 if memory.source is Source.USER else admissions.turned_away(db, memory.content_hash)
    return admit(_offer(item, repeats, contradicts=contradicts), review=policy.review)


def _offer(item: Prepared, repeats: int, *, contradicts: bool) -> Offer:
    memory = item.memory
    return Offer(
        memory.content,
        memory.kind,
        memory.source,
        memory.scope,
        memory.session_id,
        item.importance,
        item.redactions,
        repeats,
        contradicts,
    )


def _decided(
    ledger: Ledger,
    memory: NewMemory,
    outcome: Outcome,
    score: float,
    reasons: tuple[str, ...],
    twin_id: str | None = None,
) -> Receipt:
    turned_away = memory.content_hash if outcome is Outcome.REJECTED else None
    ledger.decisions.append(
        Decision(memory.id, memory.created_at, outcome, score, reasons, memory.source, memory.kind, turned_away)
    )
    told = "; ".join(reasons) if outcome in (Outcome.REJECTED, Outcome.CANDIDATE) else None
    return Receipt(twin_id or memory.id, outcome, duplicate_of=twin_id, reason=told)


def _echoed(db: Connection, item: Prepared) -> Memory | None:
    """Return the first of the memories that a text repeats, None when it says anything else."""
    found = []
    for echo in item.echoes:
        meant = [memory for memory in memories.ending_in(db, echo.short_id) if _repeats(echo, memory)]
        if not meant:
            return None
        found.append(meant[0])
    return found[0] if found else None


def _repeats(echo: Echo, memory: Memory) -> bool:
    return is_echo_of(echo, memory.content) or is_echo_of(echo, told(memory))


def _review_again(db: Connection, twin: Memory, item: Prepared, policy: WritePolicy, ledger: Ledger) -> None:
    """Let a candidate in that was offered often enough."""
    memory = item.memory
    contradicts = denies_fact(db, memory.content, memory.source, memory.created_at)
    offer = _offer(item, twin.merge_count + 1, contradicts=contradicts)
    if admit(offer, review=policy.review).verdict is Verdict.ACTIVE:
        memories.update(db, twin.seq, {"candidate": 0}, item.memory.created_at)
        known = replace(item, memory=replace(item.memory, id=twin.id))
        ledger.created.append((twin.seq, known))


def _inherited(db: Connection, item: Prepared) -> Trust:
    """Return the trust of a memory: what is derived from evidence is evidence."""
    sources = [memories.get(db, edge.to) for edge in item.edges if edge.kind is EdgeKind.DERIVED_FROM]
    hearsay = any(source is not None and source.trust is Trust.EVIDENCE for source in sources)
    return Trust.EVIDENCE if hearsay else item.memory.trust


def _draw_edges(db: Connection, seq: int, item: Prepared, place: Place | None, ledger: Ledger) -> None:
    memory = item.memory
    for number, edge in enumerate(item.edges):
        other = memories.get(db, edge.to)
        if other is None or other.seq == seq or not reaches(other.scope, viewer_within(memory.scope)):
            raise InvalidField(FieldError(f"{item.loc}edges.{number}.to", "names no memory that this one can reach"))
        edges.add(db, seq, edge.kind, other.seq, memory.source, memory.created_at)
    if place is not None and place.replaced is not None:
        edges.add(db, seq, EdgeKind.SUPERSEDES, place.replaced.seq, "facts", memory.created_at)
        ledger.ended.append(place.replaced.id)


def announce(db: Connection, ledger: Ledger) -> None:
    """Log and queue what a transaction did, at its end."""
    if ledger.created:
        first = changes.append(db, changes.CREATE, [item.memory.id for _, item in ledger.created])
        for number, (seq, item) in enumerate(ledger.created, start=first):
            tail.put(db, seq, item.tokens, number)
    if ledger.ended:
        changes.append(db, changes.CLOSE, ledger.ended)
    work.add(db, [*(seq for seq, _ in ledger.created), *ledger.queued], DIGESTION, time.time())
    # After the announcement: the change log names a memory's creation before anything else that befell it.
    if ledger.merged:
        changes.append(db, changes.MERGE, ledger.merged)
    admissions.add(db, ledger.decisions)


def _reinforce(db: Connection, twin: Memory, memory: NewMemory) -> None:
    tags = tuple(dict.fromkeys((*twin.tags, *memory.tags)))
    # An agent may only repeat what it read; a person who says it too vouches for it.
    confirmed = memory.source is Source.USER and memory.trust is Trust.TRUSTED
    memories.reinforce(db, twin.seq, importance=memory.importance, confirmed=confirmed, tags=tags, at=memory.created_at)
    detail = {
        "source": memory.source,
        "kind": memory.kind,
        "session_id": memory.session_id,
        "occurred_at": memory.occurred_at,
        "tags": memory.tags,
        "metadata": memory.metadata,
    }
    history.add(db, twin.seq, memory.created_at, "merged", None, detail)
