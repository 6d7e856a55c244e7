"""What a person decides: about candidates, about pairs that may be one, and about what was done without asking."""

import time
from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Connection

from pipeline.errors import Conflict, NotFound
from pipeline.records import EdgeKind, Filter, Memory, Outcome, Page, Stage, Viewer, page_of
from pipeline.services.sharing import withdraw_memory
from pipeline.store import audit, changes, duplicates, edges, index_state, memories, refusals, review, work
from pipeline.store.audit import AuditAction, AuditEntry
from pipeline.store.duplicates import REFUSED, PairState
from pipeline.store.refusals import Refusal, RefusedBy
from pipeline.store.review import Decision, Waiting
from pipeline.store.visibility import is_open_to
from pipeline.text.tokens import memory_tokens
from pipeline.times import utc_now
from pipeline.workspace import Workspace
from pipeline.write.fact_placement import end_before_next
from pipeline.write.revise import LET_IN, archive_memory, get_existing, restore_memory, return_to_review, undo_merge

PERSON = "review"
# A place in the list of contradictions: the row number of the one that denies, then the other's with leading zeros.
SEQ_DIGITS = 10


class PairVerdict(StrEnum):
    """What a pair is."""

    MERGE = "merge"
    KEEP = "keep"


class CandidateVerdict(StrEnum):
    """Whether a candidate becomes a memory."""

    ACCEPT = "accept"
    REJECT = "reject"


class ContradictionVerdict(StrEnum):
    """Which of two contradicting memories is valid: the denying one, the denied one, or both."""

    DENYING = "denying"
    DENIED = "denied"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that waits for review, and why it does."""

    memory: Memory
    decision: Decision | None


@dataclass(frozen=True, slots=True)
class DuplicatePair:
    """Two memories that may say the same, the older first, and why they were not merged at once."""

    id: str
    cosine: float
    reasons: tuple[str, ...]
    at: str
    older: Memory
    newer: Memory


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two memories the first of which denies the second, and who found that when."""

    denying: Memory
    denied: Memory
    made_by: str
    at: str


@dataclass(frozen=True, slots=True)
class AutomaticAct:
    """What was done without asking; a memory that was purged since is None."""

    entry: AuditEntry
    memory: Memory | None
    other: Memory | None


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a contradiction was settled: the memory archived, or else who had found that each denies the other."""

    archived: str | None = None
    denial_by: str | None = None
    reverse_by: str | None = None


def _is_open(workspace: Workspace, memory: Memory | None) -> bool:
    """Return whether a memory is no other person's own."""
    return memory is None or is_open_to(memory.scope, workspace.person_id)


def count_waiting(workspace: Workspace) -> Waiting:
    """Count what waits for a person."""
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


def list_contradictions(workspace: Workspace, limit: int, before: int | None) -> Page[Contradiction]:
    """List the contradictions between active, reviewed and valid memories, the latest memory's first."""
    below = None if before is None else divmod(before, 10**SEQ_DIGITS)
    with workspace.database.read() as db:
        contradictions = review.list_contradictions(db, limit + 1, below)
        page = page_of(
            contradictions, limit, lambda contradiction: contradiction.from_seq * 10**SEQ_DIGITS + contradiction.to_seq
        )
        known = memories.by_seqs(
            db, {seq for contradiction in page.items for seq in (contradiction.from_seq, contradiction.to_seq)}
        )
    items = [
        Contradiction(
            known[contradiction.from_seq], known[contradiction.to_seq], contradiction.made_by, contradiction.at
        )
        for contradiction in page.items
        if _is_open(workspace, known[contradiction.from_seq]) and _is_open(workspace, known[contradiction.to_seq])
    ]
    return Page(items, page.next_cursor)


def list_acts(workspace: Workspace, limit: int, before: int | None) -> Page[AutomaticAct]:
    """List what was merged or archived without asking, and what was shared, newest first."""
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
) -> Page[Decision]:
    """List what was decided about writes that reach a viewer, newest first."""
    with workspace.database.read() as db:
        page = page_of(review.page_decisions(db, outcome, viewer, limit + 1, before), limit, lambda row: row[0])
    return Page([decision for _, decision in page.items], page.next_cursor)


@dataclass(frozen=True, slots=True)
class RefusedOffer:
    """What was offered again although a person refused it; a purged memory is None."""

    refusal: Refusal
    memory: Memory | None


def list_refused_offers(workspace: Workspace, limit: int, below: str | None) -> list[RefusedOffer]:
    """List what was offered again although a person refused it, the last offered first, from below a moment."""
    with workspace.database.read() as db:
        offers = refusals.list_offered(db, limit, below)
        known = memories.by_ids(db, {offer.memory_id for offer in offers})
    return [
        RefusedOffer(offer, known.get(offer.memory_id))
        for offer in offers
        if _is_open(workspace, known.get(offer.memory_id))
    ]


def accept_refused(workspace: Workspace, memory_id: str) -> Memory | None:
    """Take a refusal back: what is still there is active again, what was purged may be offered again.

    Raises NotFound for a memory that was never refused.
    """
    now = utc_now()
    with workspace.database.write() as db:
        memory = memories.get(db, memory_id)
        if not _is_open(workspace, memory) or not refusals.take_back(db, memory_id):
            raise NotFound("This memory was never refused. `reverie review refused` lists the refused ones.")
    if memory is None and workspace.person.exists:
        # A purge is marked for every workspace there.
        with workspace.person.database.write() as db:
            refusals.take_back(db, memory_id)
        return None
    with workspace.database.write() as db:
        if memory is None:
            return None
        if memory.archived_at is not None:
            _restore(db, memory, now)
        if memory.candidate:
            _let_in(db, get_existing(db, memory_id), now)
        return get_existing(db, memory_id)


def settle_pair(workspace: Workspace, pair_id: str, verdict: PairVerdict) -> Memory:
    """Merge a pair into its older memory or keep both; return the older. Raises Conflict for one that is settled."""
    now = utc_now()
    with workspace.database.write() as db:
        pair = duplicates.get(db, pair_id)
        if pair is None:
            raise NotFound("no such pair")
        by_seq = memories.by_seqs(db, (pair.older_seq, pair.newer_seq))
        older, newer = by_seq[pair.older_seq], by_seq[pair.newer_seq]
        if not (_is_open(workspace, older) and _is_open(workspace, newer)):
            raise NotFound("no such pair")
        if pair.state is not PairState.WAITING or older.archived_at or newer.archived_at:
            raise Conflict("this pair is settled")
        if verdict is PairVerdict.KEEP:
            duplicates.settle(db, pair.id, PairState.KEPT, now)
        else:
            # What speaks for a memory cannot wait for review itself.
            let_in = older.candidate and not newer.candidate
            if let_in:
                _let_in(db, older, now)
            entry_id = duplicates.merge(db, older, newer, PERSON, now, {"cosine": pair.cosine})
            entry = audit.get(db, entry_id)
            if let_in and entry is not None:
                audit.amend(db, entry_id, {**entry.detail, LET_IN: True})
            duplicates.settle(db, pair.id, PairState.MERGED, now)
        return get_existing(db, older.id)


def settle_candidate(workspace: Workspace, memory_id: str, verdict: CandidateVerdict) -> Memory:
    """Let a candidate in, or archive it; raise Conflict for a memory that is none."""
    now = utc_now()
    with workspace.database.write() as db:
        memory = get_existing(db, memory_id)
        if not memory.candidate or memory.archived_at is not None:
            raise Conflict("this memory does not wait for review")
        if verdict is CandidateVerdict.REJECT:
            memories.archive(db, memory.seq, now)
            refusals.add(db, memory.id, memory.content_hash, RefusedBy.REJECTED, now)
        else:
            _let_in(db, memory, now)
        return get_existing(db, memory_id)


def reopen_pair(workspace: Workspace, pair_id: str) -> Memory:
    """Take the verdict on a pair back, with the merge if it was one: it waits again. Return its newer memory."""
    now = utc_now()
    with workspace.database.write() as db:
        pair = duplicates.get(db, pair_id)
        by_seq = {} if pair is None else memories.by_seqs(db, (pair.older_seq, pair.newer_seq))
        if pair is None or len(by_seq) < 2:
            raise NotFound("no such pair, or one of the two was purged")
        newer = by_seq[pair.newer_seq]
        if pair.state is PairState.WAITING:
            raise Conflict("this pair waits for a verdict already")
        if pair.state is PairState.MERGED:
            merge = audit.merge_of(db, newer.id)
            if merge is None or merge.other_id != by_seq[pair.older_seq].id:
                raise Conflict("this was undone already")
            undo_merge(db, merge, newer, now)
        duplicates.settle(db, pair.id, PairState.WAITING, now)
        return get_existing(db, newer.id)


def reopen_candidate(workspace: Workspace, memory_id: str, verdict: CandidateVerdict) -> Memory:
    """Take the verdict on a candidate back: it waits again, and the fact that it ended holds again.

    Raises Conflict for one that was accepted and is archived by now, or was stated again since.
    """
    now = utc_now()
    with workspace.database.write() as db:
        memory = get_existing(db, memory_id)
        if verdict is CandidateVerdict.REJECT:
            _restore(db, memory, now)
        elif memory.candidate or memory.archived_at is not None:
            raise Conflict("this memory is not as it was accepted")
        else:
            return_to_review(db, memory, now)
        return get_existing(db, memory_id)


def settle_contradiction(
    workspace: Workspace, denying_id: str, denied_id: str, verdict: ContradictionVerdict
) -> Settlement:
    """Archive the one of two memories that does not hold, or keep both and take the contradiction between them away.

    Returns what takes it back. Raises NotFound when the first does not contradict the second, Conflict when one of
    them is archived.
    """
    now = utc_now()
    with workspace.database.write() as db:
        denying, denied = get_existing(db, denying_id), get_existing(db, denied_id)
        made_by = edges.maker(db, denying.seq, EdgeKind.CONTRADICTS, denied.seq)
        reverse = edges.maker(db, denied.seq, EdgeKind.CONTRADICTS, denying.seq)
        if made_by is None:
            raise NotFound("these two do not contradict each other")
        if denying.archived_at is not None or denied.archived_at is not None:
            raise Conflict("this contradiction is settled")
        if verdict is not ContradictionVerdict.BOTH:
            wrong = denied if verdict is ContradictionVerdict.DENYING else denying
            archive_memory(db, wrong, now)
            refusals.add(db, wrong.id, wrong.content_hash, RefusedBy.ARCHIVED, now)
            return Settlement(archived=wrong.id)
        for source, target in ((denying, denied), (denied, denying)):
            edges.erase(db, source.seq, EdgeKind.CONTRADICTS, target.seq, now)
        changes.append(db, changes.RELATE, [denying.id, denied.id])
        return Settlement(denial_by=made_by, reverse_by=reverse)


def reopen_contradiction(workspace: Workspace, denying_id: str, denied_id: str, settlement: Settlement) -> None:
    """Reopen a contradiction; raise Conflict where it was not settled in this way."""
    now = utc_now()
    with workspace.database.write() as db:
        denying, denied = get_existing(db, denying_id), get_existing(db, denied_id)
        if settlement.archived is not None:
            wrong = denied if settlement.archived == denied_id else denying
            if wrong.id != settlement.archived:
                raise Conflict("this memory is none of the two")
            _restore(db, wrong, now)
            return
        redrawn = [
            edges.redraw(db, source.seq, EdgeKind.CONTRADICTS, target.seq, maker, now)
            for source, target, maker in (
                (denying, denied, settlement.denial_by),
                (denied, denying, settlement.reverse_by),
            )
            if maker is not None
        ]
        if not any(redrawn):
            raise Conflict("no contradiction between these two was taken away")
        changes.append(db, changes.RELATE, [denying.id, denied.id])


def undo_act(workspace: Workspace, entry_id: str) -> Memory:
    """Take back a merge, an archive or a share; return the memory it befell. Raises Conflict when it cannot be."""
    with workspace.database.read() as db:
        known = audit.get(db, entry_id)
    if known is not None and known.action is AuditAction.SHARE and known.undone_at is None:
        return withdraw_memory(workspace, known.memory_id, is_owner=True)
    now = utc_now()
    with workspace.database.write() as db:
        entry = audit.get(db, entry_id)
        memory = None if entry is None else memories.get(db, entry.memory_id)
        if entry is None or memory is None or not _is_open(workspace, memory):
            raise NotFound("no such act, or its memory was purged")
        if entry.undone_at is not None or memory.archived_at is None:
            raise Conflict("this was undone already")
        if entry.action is AuditAction.MERGE:
            undo_merge(db, entry, memory, now)
        else:
            restore_memory(db, memory, now)
            audit.mark_undone(db, entry.id, now)
            # Of what was archived because it repeats what a person refused: that may come again.
            refusals.take_back(db, entry.detail.get(REFUSED, ""))
        return get_existing(db, memory.id)


def _restore(db: Connection, memory: Memory, now: str) -> None:
    if memory.archived_at is None:
        raise Conflict("this memory is not archived")
    merge = audit.merge_of(db, memory.id)
    if merge is not None:
        undo_merge(db, merge, memory, now)
    else:
        restore_memory(db, memory, now)


def _let_in(db: Connection, memory: Memory, now: str) -> None:
    ended = end_before_next(db, memory, now) if memory.key is not None else None
    if ended is not None:
        edges.add(db, memory.seq, EdgeKind.SUPERSEDES, ended.seq, PERSON, now)
        changes.append(db, changes.CLOSE, [ended.id])
    memories.update(db, memory.seq, {"candidate": 0}, now)
    number = changes.append(db, changes.CREATE, [memory.id])
    index_state.put_tokens(db, memory.seq, memory_tokens(memory.content, memory.occurred_at), number)
    work.add(db, [memory.seq], [Stage.DEDUP], time.time())
