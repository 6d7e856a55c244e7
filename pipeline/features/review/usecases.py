"""Decisions of a person about candidates, possible duplicates and automatic changes."""

from dataclasses import dataclass
from enum import StrEnum

from pipeline.features.review import store as review
from pipeline.features.team.sharing import withdraw_memory
from pipeline.kernel.errors import Conflict, NotFound
from pipeline.kernel.records import Filter, Memory, Outcome, Page, Viewer, page_of
from pipeline.kernel.store import audit, duplicates, memories, refusals
from pipeline.kernel.store.visibility import is_open_to
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import Workspace
from pipeline.write.facts import undo_close
from pipeline.write.reindex import reindex
from pipeline.write.revise import (
    LET_IN,
    get_existing,
    let_in,
    restore_archived,
    restore_memory,
    return_to_review,
    undo_merge,
)

PERSON = "review"


class PairVerdict(StrEnum):
    """Whether a pair is one memory or two."""

    MERGE = "merge"
    KEEP = "keep"


class CandidateVerdict(StrEnum):
    """Whether a candidate becomes a memory."""

    ACCEPT = "accept"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that waits for review, and the reason."""

    memory: Memory
    decision: review.Decision | None


@dataclass(frozen=True, slots=True)
class DuplicatePair:
    """Two memories that may be duplicates, the older first, and why they were not merged automatically."""

    id: str
    cosine: float
    reasons: tuple[str, ...]
    at: str
    older: Memory
    newer: Memory


@dataclass(frozen=True, slots=True)
class AutomaticAct:
    """An automatic change; a memory that was purged since is None."""

    entry: audit.AuditEntry
    memory: Memory | None
    other: Memory | None


def _is_open(workspace: Workspace, memory: Memory | None) -> bool:
    """Return whether a memory is not private to another person."""
    return memory is None or is_open_to(memory.scope, workspace.person_id)


def count_waiting(workspace: Workspace) -> review.Waiting:
    """Count the items that wait for a decision."""
    with workspace.database.read() as db:
        return review.count_waiting(db)


def list_candidates(workspace: Workspace, viewer: Viewer, limit: int, before: int | None) -> Page[Candidate]:
    """List the memories that wait for review, newest first."""
    with workspace.database.read() as db:
        waiting = memories.page(db, Filter(candidates=True, viewer=viewer), limit + 1, before)
        why = review.decisions_by_ids(db, [memory.id for memory in waiting])
    candidates = [Candidate(memory, why.get(memory.id)) for memory in waiting]
    return page_of(candidates, limit, lambda candidate: candidate.memory.seq)


def list_pairs(workspace: Workspace, viewer: Viewer, limit: int, before: int | None) -> Page[DuplicatePair]:
    """List the pairs that wait for a verdict, newest first."""
    with workspace.database.read() as db:
        page = page_of(duplicates.list_waiting(db, viewer, limit + 1, before), limit, lambda pair: pair.seq)
        known = memories.by_seqs(db, {seq for pair in page.items for seq in (pair.older_seq, pair.newer_seq)})
    pairs = [
        DuplicatePair(pair.id, pair.cosine, pair.reasons, pair.at, known[pair.older_seq], known[pair.newer_seq])
        for pair in page.items
    ]
    return Page(pairs, page.next_cursor)


def list_acts(workspace: Workspace, limit: int, before: int | None) -> Page[AutomaticAct]:
    """List automatic merges and archives, and shares, newest first."""
    with workspace.database.read() as db:
        page = page_of(audit.page(db, limit + 1, before), limit, lambda entry: entry.seq)
        known = memories.by_ids(
            db, {memory_id for entry in page.items for memory_id in (entry.memory_id, entry.other_id) if memory_id}
        )
    acts = [
        AutomaticAct(act, known.get(act.memory_id), known.get(act.other_id or ""))
        for act in page.items
        if all(_is_open(workspace, known.get(name)) for name in (act.memory_id, act.other_id or ""))
    ]
    return Page(acts, page.next_cursor)


def list_admissions(
    workspace: Workspace, viewer: Viewer, outcome: Outcome | None, limit: int, before: int | None
) -> Page[review.Decision]:
    """List the decisions about writes that a viewer can read, newest first."""
    with workspace.database.read() as db:
        page = page_of(review.page_decisions(db, outcome, viewer, limit + 1, before), limit, lambda row: row[0])
    return Page([decision for _, decision in page.items], page.next_cursor)


@dataclass(frozen=True, slots=True)
class RefusedOffer:
    """A refused memory that was offered again; None for a purged memory."""

    refusal: refusals.Refusal
    memory: Memory | None


def list_refused_offers(workspace: Workspace, limit: int) -> list[RefusedOffer]:
    """List refused memories that were offered again, the last offered first."""
    with workspace.database.read() as db:
        offers = refusals.list_offered(db, limit)
        known = memories.by_ids(db, {offer.memory_id for offer in offers})
    return [
        RefusedOffer(offer, known.get(offer.memory_id))
        for offer in offers
        if _is_open(workspace, known.get(offer.memory_id))
    ]


def accept_refused(workspace: Workspace, memory_id: str) -> Memory | None:
    """Undo a refusal: the memory becomes active again; a purged one may be offered again.

    Raises NotFound for a memory that was never refused.
    """
    now = utc_now()
    with workspace.database.write() as db:
        memory = memories.get(db, memory_id)
        if not _is_open(workspace, memory) or not refusals.take_back(db, memory_id):
            raise NotFound("This memory was never refused. `reverie review refused` lists the refused ones.")
    if memory is None and workspace.person.exists:
        # The personal store contains the marks of purges for all workspaces.
        with workspace.person.database.write() as db:
            refusals.take_back(db, memory_id)
        return None
    with workspace.database.write() as db:
        if memory is None:
            return None
        if memory.archived_at is not None:
            restore_archived(db, memory, now)
        if memory.candidate:
            let_in(db, get_existing(db, memory_id), now, PERSON)
        return get_existing(db, memory_id)


def settle_pair(workspace: Workspace, pair_id: str, verdict: PairVerdict) -> Memory:
    """Merge a pair into the memory that was stated last, or keep both; return that memory.

    Raises Conflict for a settled pair.
    """
    now = utc_now()
    with workspace.database.write() as db:
        pair = duplicates.get(db, pair_id)
        if pair is None:
            raise NotFound("no such pair")
        by_seq = memories.by_seqs(db, (pair.older_seq, pair.newer_seq))
        earlier, later = sorted(by_seq.values(), key=lambda memory: duplicates.find_last_statement(db, memory.seq))
        if not (_is_open(workspace, earlier) and _is_open(workspace, later)):
            raise NotFound("no such pair")
        if pair.state is not duplicates.PairState.WAITING or earlier.archived_at or later.archived_at:
            raise Conflict("this pair is settled")
        if verdict is PairVerdict.KEEP:
            duplicates.settle(db, pair.id, duplicates.PairState.KEPT, now)
        else:
            # The survivor of a merge must not be a candidate.
            becomes_active = later.candidate and not earlier.candidate
            if becomes_active:
                let_in(db, later, now, PERSON)
            entry_id = duplicates.merge(db, later, earlier, PERSON, now, {"cosine": pair.cosine})
            reindex(db, later)
            entry = audit.get(db, entry_id)
            if becomes_active and entry is not None:
                audit.amend(db, entry_id, {**entry.detail, LET_IN: True})
            duplicates.settle(db, pair.id, duplicates.PairState.MERGED, now)
        return get_existing(db, later.id)


def settle_candidate(workspace: Workspace, memory_id: str, verdict: CandidateVerdict) -> Memory:
    """Accept a candidate or archive it; raise Conflict if the memory is not a candidate."""
    now = utc_now()
    with workspace.database.write() as db:
        memory = get_existing(db, memory_id)
        if not memory.candidate or memory.archived_at is not None:
            raise Conflict("this memory does not wait for review")
        if verdict is CandidateVerdict.REJECT:
            memories.archive(db, memory.seq, now)
            refusals.add(db, memory.id, memory.content_hash, refusals.RefusedBy.REJECTED, now)
        else:
            let_in(db, memory, now, PERSON)
        return get_existing(db, memory_id)


def reopen_pair(workspace: Workspace, pair_id: str) -> Memory:
    """Undo the verdict on a pair, including a merge, so that it waits again; return its newer memory."""
    now = utc_now()
    with workspace.database.write() as db:
        pair = duplicates.get(db, pair_id)
        by_seq = {} if pair is None else memories.by_seqs(db, (pair.older_seq, pair.newer_seq))
        if pair is None or len(by_seq) < 2:
            raise NotFound("no such pair, or one of the two was purged")
        newer = by_seq[pair.newer_seq]
        if pair.state is duplicates.PairState.WAITING:
            raise Conflict("this pair waits for a verdict already")
        if pair.state is duplicates.PairState.MERGED:
            merges = [(audit.merge_of(db, memory.id), memory) for memory in by_seq.values()]
            ids = {memory.id for memory in by_seq.values()}
            merged = next(((merge, memory) for merge, memory in merges if merge and merge.other_id in ids), None)
            if merged is None:
                raise Conflict("this was undone already")
            undo_merge(db, *merged, now)
        duplicates.settle(db, pair.id, duplicates.PairState.WAITING, now)
        return get_existing(db, newer.id)


def reopen_candidate(workspace: Workspace, memory_id: str, verdict: CandidateVerdict) -> Memory:
    """Undo the verdict on a candidate, so that it waits again and the fact that it ended is valid again.

    Raises Conflict if an accepted candidate was archived or stated again since.
    """
    now = utc_now()
    with workspace.database.write() as db:
        memory = get_existing(db, memory_id)
        if verdict is CandidateVerdict.REJECT:
            restore_archived(db, memory, now)
        elif memory.candidate or memory.archived_at is not None:
            raise Conflict("this memory is not as it was accepted")
        else:
            return_to_review(db, memory, now)
        return get_existing(db, memory_id)


def undo_act(workspace: Workspace, entry_id: str) -> Memory:
    """Undo a merge, archive, share or end of a fact; return its memory, or raise Conflict."""
    with workspace.database.read() as db:
        known = audit.get(db, entry_id)
    if known is not None and known.action is audit.AuditAction.SHARE and known.undone_at is None:
        return withdraw_memory(workspace, known.memory_id)
    now = utc_now()
    with workspace.database.write() as db:
        entry = audit.get(db, entry_id)
        memory = None if entry is None else memories.get(db, entry.memory_id)
        if entry is None or memory is None or not _is_open(workspace, memory):
            raise NotFound("no such act, or its memory was purged")
        if entry.undone_at is not None or (entry.action is not audit.AuditAction.CLOSE and memory.archived_at is None):
            raise Conflict("this was undone already")
        if entry.action is audit.AuditAction.CLOSE:
            return undo_close(db, entry, now)
        if entry.action is audit.AuditAction.MERGE:
            undo_merge(db, entry, memory, now)
        else:
            restore_memory(db, memory, now)
            audit.mark_undone(db, entry.id, now)
            # If it was archived as a repetition of a refused text, that text may be offered again.
            refusals.take_back(db, entry.detail.get(duplicates.REFUSED, ""))
        return get_existing(db, memory.id)
