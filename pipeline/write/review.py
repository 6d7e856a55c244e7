"""What a person decides: about candidates, about pairs that may be one, and about what was done without asking."""

import time
from enum import StrEnum
from sqlite3 import Connection
from typing import NamedTuple

from pipeline.errors import Conflict, NotFound
from pipeline.records import EdgeKind, Memory, Stage
from pipeline.store import audit, changes, edges, memories, merging, pairs, tail, work
from pipeline.store.audit import Action
from pipeline.store.database import Database
from pipeline.store.pairs import PairState
from pipeline.text.tokens import memory_tokens
from pipeline.times import utc_now
from pipeline.write.keyed import fit_between
from pipeline.write.revise import LET_IN, bring_back, existing, put_away, put_back, separate

PERSON = "review"


class PairVerdict(StrEnum):
    """What a pair is."""

    MERGE = "merge"
    KEEP = "keep"


class CandidateVerdict(StrEnum):
    """Whether a candidate becomes a memory."""

    ACCEPT = "accept"
    REJECT = "reject"


class DenialVerdict(StrEnum):
    """Which of two memories that contradict each other holds: the one that denies, the one that is denied, or both."""

    DENYING = "denying"
    DENIED = "denied"
    BOTH = "both"


class Makers(NamedTuple):
    """Who found that a memory denies another, and who that the other denies it too, if anybody did."""

    denial: str
    reverse: str | None = None


def settle_pair(database: Database, pair_id: str, verdict: PairVerdict) -> Memory:
    """Merge a pair into its older memory or keep both; return the older. Raises Conflict for one that is settled."""
    now = utc_now()
    with database.write() as db:
        pair = pairs.get(db, pair_id)
        if pair is None:
            raise NotFound("no such pair")
        found = memories.by_seqs(db, (pair.older_seq, pair.newer_seq))
        older, newer = found[pair.older_seq], found[pair.newer_seq]
        if pair.state is not PairState.WAITING or older.archived_at or newer.archived_at:
            raise Conflict("this pair is settled")
        if verdict is PairVerdict.KEEP:
            pairs.settle(db, pair.id, PairState.KEPT, now)
        else:
            # What speaks for a memory cannot wait for review itself.
            let_in = older.candidate and not newer.candidate
            if let_in:
                _let_in(db, older, now)
            entry_id = merging.merge(db, older, newer, PERSON, now, {"cosine": pair.cosine})
            entry = audit.get(db, entry_id)
            if let_in and entry is not None:
                audit.amend(db, entry_id, {**entry.detail, LET_IN: True})
            pairs.settle(db, pair.id, PairState.MERGED, now)
        return existing(db, older.id)


def settle_candidate(database: Database, memory_id: str, verdict: CandidateVerdict) -> Memory:
    """Let a candidate in, or archive it; raise Conflict for a memory that is none."""
    now = utc_now()
    with database.write() as db:
        memory = existing(db, memory_id)
        if not memory.candidate or memory.archived_at is not None:
            raise Conflict("this memory does not wait for review")
        if verdict is CandidateVerdict.REJECT:
            memories.archive(db, memory.seq, now)
        else:
            _let_in(db, memory, now)
        return existing(db, memory_id)


def reopen_pair(database: Database, pair_id: str) -> Memory:
    """Take the verdict on a pair back, with the merge if it was one: it waits again. Return its newer memory."""
    now = utc_now()
    with database.write() as db:
        pair = pairs.get(db, pair_id)
        found = {} if pair is None else memories.by_seqs(db, (pair.older_seq, pair.newer_seq))
        if pair is None or len(found) < 2:
            raise NotFound("no such pair, or one of the two was purged")
        newer = found[pair.newer_seq]
        if pair.state is PairState.WAITING:
            raise Conflict("this pair waits for a verdict already")
        if pair.state is PairState.MERGED:
            merge = audit.merge_of(db, newer.id)
            if merge is None or merge.other_id != found[pair.older_seq].id:
                raise Conflict("this was undone already")
            separate(db, merge, newer, now)
        pairs.settle(db, pair.id, PairState.WAITING, now)
        return existing(db, newer.id)


def put_back_candidate(database: Database, memory_id: str) -> Memory:
    """Take back that a candidate was let in: it waits again, and the fact that it ended holds again.

    Raises Conflict for what is archived by now, or was told again since.
    """
    now = utc_now()
    with database.write() as db:
        memory = existing(db, memory_id)
        if memory.candidate or memory.archived_at is not None:
            raise Conflict("this memory is not as it was let in")
        put_back(db, memory, now)
        return existing(db, memory_id)


def settle_denial(database: Database, denying_id: str, denied_id: str, verdict: DenialVerdict) -> Makers:
    """Archive the one of two memories that does not hold, or keep both and take the contradiction between them away.

    Returns who had found it. Raises NotFound when the first does not contradict the second, Conflict when one of them
    is archived.
    """
    now = utc_now()
    with database.write() as db:
        denying, denied = existing(db, denying_id), existing(db, denied_id)
        made_by = edges.maker(db, denying.seq, EdgeKind.CONTRADICTS, denied.seq)
        reverse = edges.maker(db, denied.seq, EdgeKind.CONTRADICTS, denying.seq)
        if made_by is None:
            raise NotFound("these two do not contradict each other")
        if denying.archived_at is not None or denied.archived_at is not None:
            raise Conflict("this contradiction is settled")
        if verdict is DenialVerdict.BOTH:
            for one, other in ((denying, denied), (denied, denying)):
                edges.erase(db, one.seq, EdgeKind.CONTRADICTS, other.seq, now)
            changes.append(db, changes.RELATE, [denying.id, denied.id])
        else:
            put_away(db, denied if verdict is DenialVerdict.DENYING else denying, now)
        return Makers(made_by, reverse)


def reopen_denial(database: Database, denying_id: str, denied_id: str, makers: Makers) -> None:
    """Let a contradiction stand again that was taken away, both ways if it did; raise Conflict where none was."""
    now = utc_now()
    with database.write() as db:
        denying, denied = existing(db, denying_id), existing(db, denied_id)
        redrawn = [
            edges.redraw(db, one.seq, EdgeKind.CONTRADICTS, other.seq, maker, now)
            for one, other, maker in ((denying, denied, makers.denial), (denied, denying, makers.reverse))
            if maker is not None
        ]
        if not any(redrawn):
            raise Conflict("no contradiction between these two was taken away")
        changes.append(db, changes.RELATE, [denying.id, denied.id])


def undo(database: Database, entry_id: str) -> Memory:
    """Take back an automatic merge or archive; return the memory that came back. Raises Conflict when it cannot be."""
    now = utc_now()
    with database.write() as db:
        entry = audit.get(db, entry_id)
        memory = None if entry is None else memories.get(db, entry.memory_id)
        if entry is None or memory is None:
            raise NotFound("no such act, or its memory was purged")
        if entry.undone_at is not None or memory.archived_at is None:
            raise Conflict("this was undone already")
        if entry.action is Action.MERGE:
            separate(db, entry, memory, now)
        else:
            bring_back(db, memory, now)
            audit.mark_undone(db, entry.id, now)
        return existing(db, memory.id)


def _let_in(db: Connection, memory: Memory, now: str) -> None:
    ended = fit_between(db, memory, now) if memory.key is not None else None
    if ended is not None:
        edges.add(db, memory.seq, EdgeKind.SUPERSEDES, ended.seq, PERSON, now)
        changes.append(db, changes.CLOSE, [ended.id])
    memories.update(db, memory.seq, {"candidate": 0}, now)
    number = changes.append(db, changes.CREATE, [memory.id])
    tail.put(db, memory.seq, memory_tokens(memory.content, memory.occurred_at), number)
    work.add(db, [memory.seq], [Stage.DEDUP], time.time())
