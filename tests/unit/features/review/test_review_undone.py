"""Judgements taken back: whatever a person decided in the inbox waits again, as if nothing had been said."""

import pytest

from pipeline.features.review import store as review
from pipeline.features.review.conflicts import ConflictAction, Settlement, reopen_conflict, settle_conflict
from pipeline.features.review.usecases import (
    CandidateVerdict,
    PairVerdict,
    reopen_candidate,
    reopen_pair,
    settle_candidate,
    settle_pair,
    undo_act,
)
from pipeline.kernel.errors import Conflict, NotFound
from pipeline.kernel.records import Draft, EdgeKind, FactKey, Outcome, Source
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.store import audit, duplicates, edges, facts, history, index_state, memories
from pipeline.kernel.store.duplicates import PairState
from pipeline.kernel.times import utc_now
from pipeline.write import revise
from pipeline.write.accept import accept
from pipeline.write.facts import set_fact
from tests.fakes.in_process import scratch_database, workspace_over

REVIEW = WritePolicy(review=True)
KEY = FactKey("staging", "port")


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def keep(database, content, **fields):
    memory_id = accept(database, Draft(content, **fields), REVIEW).id
    return read(database, memory_id)


def read(database, memory_id):
    with database.read() as db:
        return memories.get(db, memory_id)


def snapshot_fields(memory):
    return memory.content, memory.tags, memory.importance, memory.merge_count, memory.pinned, memory.archived_at


@pytest.fixture
def pair(database):
    older = keep(database, "The build runs nightly", tags=("ci",), importance=0.4)
    newer = keep(database, "The build runs every night", tags=("ops",), importance=0.9)
    with database.write() as db:
        duplicates.add(db, older.seq, newer.seq, 0.9, ["one contains more"], utc_now())
        [(pair_id,)] = db.execute("SELECT id FROM pair").fetchall()
        return duplicates.get(db, pair_id)


def both(database, pair):
    with database.read() as db:
        found = memories.by_seqs(db, (pair.older_seq, pair.newer_seq))
    return snapshot_fields(found[pair.older_seq]), snapshot_fields(found[pair.newer_seq])


@pytest.mark.parametrize("verdict", PairVerdict)
def test_a_pair_waits_again(database, pair, verdict):
    before = both(database, pair)
    settle_pair(workspace_over(database), pair.id, verdict)
    assert reopen_pair(workspace_over(database), pair.id).seq == pair.newer_seq
    assert both(database, pair) == before
    with database.read() as db:
        assert duplicates.get(db, pair.id).state is PairState.WAITING
        assert review.count_waiting(db) == review.Waiting(0, 1, 0, 0)
        assert history.of(db, pair.older_seq) == []
        assert pair.newer_seq in {row[0] for row in index_state.list_tail_after(db, 0)}
    # And may be judged the other way.
    settle_pair(workspace_over(database), pair.id, PairVerdict.MERGE)
    with pytest.raises(Conflict):
        settle_pair(workspace_over(database), pair.id, PairVerdict.KEEP)


def test_a_pair_that_waits_cannot_be_taken_back(database, pair):
    with pytest.raises(Conflict):
        reopen_pair(workspace_over(database), pair.id)
    with pytest.raises(NotFound):
        reopen_pair(workspace_over(database), "01ARZ3NDEKTSV4RRFFQ69G5FAV")


def test_pair_whose_merge_was_undone_elsewhere_can_be_reopened(database, pair):
    settle_pair(workspace_over(database), pair.id, PairVerdict.MERGE)
    with database.read() as db:
        older = memories.by_seqs(db, [pair.older_seq])[pair.older_seq]
    revise.restore(database, older.id)
    # Kept by now, which is a verdict of its own.
    reopen_pair(workspace_over(database), pair.id)
    with database.read() as db:
        assert duplicates.get(db, pair.id).state is PairState.WAITING


def test_of_a_pair_one_of_which_is_purged_nothing_is_left(database, pair):
    settle_pair(workspace_over(database), pair.id, PairVerdict.KEEP)
    with database.read() as db:
        newer = memories.by_seqs(db, [pair.newer_seq])[pair.newer_seq]
    revise.purge(database, newer.id)
    with pytest.raises(NotFound):
        reopen_pair(workspace_over(database), pair.id)


@pytest.fixture
def candidate_pair(database):
    """A pair whose older memory is a candidate that was stated last."""
    older = keep(database, "Deploys of the shop wait for the tests", source=Source.AMBIENT)
    newer = keep(database, "Deploys of the shop wait for all tests", occurred_at="2024-01-01T00:00:00.000Z")
    assert (older.candidate, newer.candidate) == (True, False)
    return pair_of(database, older, newer)


def pair_of(database, older, newer):
    with database.write() as db:
        duplicates.add(db, older.seq, newer.seq, 0.9, [], utc_now())
        [(pair_id,)] = db.execute("SELECT id FROM pair WHERE newer_seq = ?", (newer.seq,)).fetchall()
        return duplicates.get(db, pair_id)


def waits(database, pair):
    """Tell whether the older of a pair is a candidate, and whether it may be found by its words."""
    with database.read() as db:
        older = memories.by_seqs(db, [pair.older_seq])[pair.older_seq]
        return older.candidate, pair.older_seq in {row[0] for row in index_state.list_tail_after(db, 0)}


@pytest.mark.parametrize("way", ["the verdict", "the merge", "the memory"])
def test_candidate_accepted_by_a_merge_waits_again_when_undone(database, candidate_pair, way):
    before = both(database, candidate_pair)
    survivor = settle_pair(workspace_over(database), candidate_pair.id, PairVerdict.MERGE)
    assert waits(database, candidate_pair) == (False, True)
    with database.read() as db:
        newer = memories.by_seqs(db, [candidate_pair.newer_seq])[candidate_pair.newer_seq]
        merge = audit.merge_of(db, newer.id)
        assert [entry.detail for entry in history.of(db, survivor.seq)] == [
            {"memory_id": newer.id, "by": "review", "cosine": 0.9}
        ]
    if way == "the verdict":
        reopen_pair(workspace_over(database), candidate_pair.id)
    elif way == "the merge":
        undo_act(workspace_over(database), merge.id)
    else:
        revise.restore(database, newer.id)
    assert waits(database, candidate_pair) == (True, False)
    assert both(database, candidate_pair) == before


def test_reopened_pair_does_not_wait_after_another_merge(database, candidate_pair):
    settle_pair(workspace_over(database), candidate_pair.id, PairVerdict.MERGE)
    with database.read() as db:
        older = memories.by_seqs(db, [candidate_pair.older_seq])[candidate_pair.older_seq]
    third = pair_of(
        database,
        older,
        keep(database, "Every deploy of the shop waits for the tests", occurred_at="2024-01-02T00:00:00.000Z"),
    )
    settle_pair(workspace_over(database), third.id, PairVerdict.MERGE)
    reopen_pair(workspace_over(database), candidate_pair.id)
    assert waits(database, candidate_pair) == (False, True)


def test_memory_accepted_before_its_merge_stays_accepted_on_reopen(database, candidate_pair):
    with database.read() as db:
        older = memories.by_seqs(db, [candidate_pair.older_seq])[candidate_pair.older_seq]
    settle_candidate(workspace_over(database), older.id, CandidateVerdict.ACCEPT)
    settle_pair(workspace_over(database), candidate_pair.id, PairVerdict.MERGE)
    reopen_pair(workspace_over(database), candidate_pair.id)
    assert waits(database, candidate_pair) == (False, True)


def test_reopened_candidate_waits_again(database):
    candidate = keep(database, "Deploys of the shop wait for the tests", source=Source.AMBIENT)
    assert candidate.candidate
    settle_candidate(workspace_over(database), candidate.id, CandidateVerdict.ACCEPT)
    reopen_candidate(workspace_over(database), candidate.id, CandidateVerdict.ACCEPT)
    with database.read() as db:
        assert memories.get(db, candidate.id).candidate
        assert candidate.seq not in {row[0] for row in index_state.list_tail_after(db, 0)}
        assert review.count_waiting(db).candidates == 1
    with pytest.raises(Conflict):
        reopen_candidate(workspace_over(database), candidate.id, CandidateVerdict.ACCEPT)
    settle_candidate(workspace_over(database), candidate.id, CandidateVerdict.ACCEPT)


def test_reopened_fact_restores_the_value_it_ended(database):
    told = set_fact(database, KEY, 5433, Draft(content=""), REVIEW)
    receipt = set_fact(database, KEY, 6543, Draft(content="", source=Source.AMBIENT), REVIEW)
    assert receipt.outcome is Outcome.CANDIDATE
    settle_candidate(workspace_over(database), receipt.id, CandidateVerdict.ACCEPT)
    assert read(database, told.id).valid_to is not None
    reopen_candidate(workspace_over(database), receipt.id, CandidateVerdict.ACCEPT)
    assert read(database, told.id).valid_to is None
    with database.read() as db:
        holder = facts.find_valid(db, KEY, read(database, told.id).scope, utc_now())
        assert (holder.id, edges.of(db, holder.seq)) == (told.id, [])
    settle_candidate(workspace_over(database), receipt.id, CandidateVerdict.ACCEPT)
    assert read(database, told.id).valid_to is not None


def test_candidate_archived_after_acceptance_cannot_be_reopened(database):
    candidate = keep(database, "Deploys of the shop wait for the tests", source=Source.AMBIENT)
    settle_candidate(workspace_over(database), candidate.id, CandidateVerdict.ACCEPT)
    revise.archive(database, candidate.id)
    with pytest.raises(Conflict):
        reopen_candidate(workspace_over(database), candidate.id, CandidateVerdict.ACCEPT)


@pytest.fixture
def denial(database):
    denied = keep(database, "The build runs nightly")
    denying = keep(database, "The build does not run nightly")
    with database.write() as db:
        edges.add(db, denying.seq, EdgeKind.CONTRADICTS, denied.seq, "edges-job", utc_now())
    return denying, denied


def list_contradictions(database):
    with database.read() as db:
        return [(one.from_seq, one.to_seq, one.made_by) for one in review.list_contradictions(db, 5, None)]


@pytest.mark.parametrize("loser", [1, 0])
def test_contradiction_loser_is_archived_and_restored_on_reopen(database, denial, loser):
    kept_and_other = denial[1 - loser].id, denial[loser].id
    settlement = settle_conflict(workspace_over(database), *kept_and_other, ConflictAction.KEEP)
    assert settlement == Settlement(archived=denial[loser].id, audit_id=settlement.audit_id)
    with database.read() as db:
        entry = audit.get(db, settlement.audit_id)
    assert (entry.memory_id, entry.undone_at) == (denial[loser].id, None)
    assert [read(database, one.id).archived_at is not None for one in denial] == [loser == 0, loser == 1]
    assert list_contradictions(database) == []
    with pytest.raises(Conflict):
        settle_conflict(workspace_over(database), *kept_and_other, ConflictAction.KEEP)
    reopen_conflict(workspace_over(database), denial[0].id, denial[1].id, settlement)
    assert list_contradictions(database) == [(denial[0].seq, denial[1].seq, "edges-job")]


@pytest.mark.parametrize("mutual", [False, True])
def test_both_are_kept_and_contradict_each_other_again(database, denial, mutual):
    denying, denied = denial
    if mutual:
        with database.write() as db:
            edges.add(db, denied.seq, EdgeKind.CONTRADICTS, denying.seq, "caller", utc_now())
    with database.read() as db:
        before = [edge_of(db, denying, denied), edge_of(db, denied, denying)]
    settlement = settle_conflict(workspace_over(database), denying.id, denied.id, ConflictAction.BOTH)
    assert settlement == Settlement(denial_by="edges-job", reverse_by="caller" if mutual else None)
    assert list_contradictions(database) == []
    with database.write() as db:
        # A job does not find again what a person took away.
        assert not edges.find(db, denying.seq, EdgeKind.CONTRADICTS, denied.seq, "edges-job", utc_now())
    reopen_conflict(workspace_over(database), denying.id, denied.id, settlement)
    assert list_contradictions(database) == [(denying.seq, denied.seq, "edges-job")]
    with database.read() as db:
        assert [edge_of(db, denying, denied), edge_of(db, denied, denying)] == before
        assert history.of(db, denying.seq) + history.of(db, denied.seq) == []
    with pytest.raises(Conflict):
        reopen_conflict(workspace_over(database), denying.id, denied.id, settlement)


def edge_of(db, one, other):
    return edges.maker(db, one.seq, EdgeKind.CONTRADICTS, other.seq)


def test_contradiction_removed_by_a_person_stays_removed_on_reopen(database, denial):
    denying, denied = denial
    with database.write() as db:
        edges.add(db, denied.seq, EdgeKind.CONTRADICTS, denying.seq, "caller", utc_now())
        edges.erase(db, denied.seq, EdgeKind.CONTRADICTS, denying.seq, utc_now())
    settlement = settle_conflict(workspace_over(database), denying.id, denied.id, ConflictAction.BOTH)
    reopen_conflict(workspace_over(database), denying.id, denied.id, settlement)
    with database.read() as db:
        assert edge_of(db, denied, denying) is None
        assert [entry.event for entry in history.of(db, denied.seq)] == [edges.ERASED]


def test_two_that_agree_are_no_contradiction(database, denial):
    other = keep(database, "Tests run in parallel")
    for unrelated in (other.id, "nobody"):
        with pytest.raises(NotFound):
            settle_conflict(workspace_over(database), denial[0].id, unrelated, ConflictAction.BOTH)
