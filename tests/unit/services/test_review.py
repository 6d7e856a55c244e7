"""What a person decides about pairs, candidates and automatic acts, and what taking it back restores."""

import pytest

from pipeline.errors import Conflict, NotFound
from pipeline.records import Draft, FactKey, Outcome, Revision, Source, Stage, Trust
from pipeline.services.review import CandidateVerdict, PairVerdict, settle_candidate, settle_pair, undo_act
from pipeline.store import audit, duplicates, facts, history, index_state, review, work
from pipeline.times import utc_now
from pipeline.write import revise
from pipeline.write.accept import WritePolicy, accept
from pipeline.write.facts import set_fact
from tests.fakes.angles import Doubles
from tests.fakes.in_process import scratch_database, workspace_over

ONE = "The build runs nightly on the small server."
SAME = "the build runs nightly on the small server"
THIRD = "The build runs nightly on the small server!"
MORE = "The build runs nightly on the small server and mails a report."
DOUBTFUL = "Deploys of the shop wait for the tests"
REVIEW = WritePolicy(review=True)
KEY = FactKey("staging", "port")


@pytest.fixture
def doubles():
    with scratch_database() as database:
        doubles = Doubles(database)
        yield doubles
        doubles.close()


def merge_texts(doubles, *texts, **fields):
    """Write a memory and doubles of it, merge them, and return the ids and the audit entries, oldest first."""
    ids = [doubles.write(ONE, importance=0.4, tags=("old",), source=Source.IMPORT)]
    ids += [doubles.write(text, **fields) for text in texts or (SAME,)]
    doubles.digest()
    assert doubles.active() == {ids[0]}
    return ids, entries(doubles)


def entries(doubles):
    with doubles.database.read() as db:
        return [entry.id for entry in reversed(audit.page(db, 100, None))]


def get_waiting_pair(doubles):
    with doubles.database.read() as db:
        [(pair_id,)] = db.execute("SELECT id FROM pair WHERE state = 'waiting'").fetchall()
        return duplicates.get(db, pair_id)


def snapshot_fields(memory):
    return memory.content, memory.tags, memory.importance, memory.trust, memory.merge_count, memory.pinned


def candidate(doubles, text=DOUBTFUL):
    memory_id = doubles.write(text, source=Source.AMBIENT, policy=REVIEW)
    assert doubles.get(memory_id).candidate
    return memory_id


def in_tail(doubles, memory_id):
    seq = doubles.get(memory_id).seq
    with doubles.database.read() as db:
        return seq in {row[0] for row in index_state.list_tail_after(db, 0)}


def test_undoing_a_merge_restores_both(doubles):
    older = doubles.write(ONE, importance=0.4, tags=("old",), source=Source.IMPORT)
    newer = doubles.write(SAME, importance=0.9, tags=("new",))
    before = snapshot_fields(doubles.get(older)), snapshot_fields(doubles.get(newer))
    doubles.digest()
    assert doubles.get(older).trust is Trust.TRUSTED
    [entry] = entries(doubles)
    assert undo_act(workspace_over(doubles.database), entry).id == newer
    assert (snapshot_fields(doubles.get(older)), snapshot_fields(doubles.get(newer))) == before
    assert (doubles.told(older), doubles.told(newer), doubles.edges()) == ([], [], [])
    assert in_tail(doubles, newer)


def test_what_was_undone_is_not_merged_again(doubles):
    ids, [entry] = merge_texts(doubles)
    undo_act(workspace_over(doubles.database), entry)
    doubles.digest_again()
    assert doubles.active() == set(ids)
    assert doubles.pairs() == []


def test_what_was_undone_goes_into_nothing_that_holds_what_it_was_told_apart_from(doubles):
    oldest = doubles.write(ONE, 0.5)
    older, newer = doubles.write(SAME), doubles.write(THIRD)
    doubles.digest()
    [entry] = entries(doubles)
    undo_act(workspace_over(doubles.database), entry)
    for text in (ONE, SAME, THIRD):
        doubles.encoder.point(text, 1.0)
    with doubles.database.write() as db:
        work.add(db, [doubles.get(one).seq for one in (oldest, older, newer)], [Stage.EMBED], 0.0)
    doubles.embed()
    # The one that was kept apart is looked at last: by then the other is a part of the oldest.
    doubles.digest()
    assert newer in doubles.active()
    assert doubles.merges()[-1] == (older, oldest)


def test_undoing_twice_is_a_conflict(doubles):
    _, [entry] = merge_texts(doubles)
    undo_act(workspace_over(doubles.database), entry)
    with pytest.raises(Conflict):
        undo_act(workspace_over(doubles.database), entry)


@pytest.mark.parametrize("purged", [0, 1])
def test_after_a_purge_there_is_nothing_to_undo(doubles, purged):
    ids, [entry] = merge_texts(doubles)
    revise.purge(doubles.database, ids[purged])
    with pytest.raises(NotFound):
        undo_act(workspace_over(doubles.database), entry)


def test_nothing_is_undone_where_the_text_was_written_again(doubles):
    ids, [entry] = merge_texts(doubles)
    doubles.write(SAME)
    before = doubles.state()
    with pytest.raises(Conflict):
        undo_act(workspace_over(doubles.database), entry)
    assert doubles.state() == before
    assert doubles.get(ids[1]).archived_at is not None


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_merges_are_undone_in_any_order(doubles, order):
    older = doubles.write(ONE, importance=0.4, tags=("old",), source=Source.IMPORT)
    before = snapshot_fields(doubles.get(older))
    doubles.write(SAME, importance=0.8, tags=("both", "one"))
    doubles.write(THIRD, importance=0.9, tags=("both", "other"))
    doubles.digest()
    assert doubles.get(older).tags == ("old", "both", "one", "other")
    found = entries(doubles)
    undo_act(workspace_over(doubles.database), found[order[0]])
    left = doubles.get(older)
    assert left.importance == (0.9 if order[0] == 0 else 0.8)
    assert left.tags == ("old", "both", "other" if order[0] == 0 else "one")
    assert left.trust is Trust.TRUSTED
    undo_act(workspace_over(doubles.database), found[order[1]])
    assert snapshot_fields(doubles.get(older)) == before


def test_what_a_person_changed_since_stays_when_a_merge_is_undone(doubles):
    ids, [entry] = merge_texts(doubles, SAME, source=Source.AGENT, importance=0.9, tags=("new",))
    revision = Revision(importance=0.2, tags=("old", "mine"), trust=Trust.TRUSTED, pinned=True)
    revise.edit(doubles.database, ids[0], revision)
    undo_act(workspace_over(doubles.database), entry)
    survivor = doubles.get(ids[0])
    assert (survivor.importance, survivor.tags, survivor.trust, survivor.pinned) == (
        0.2,
        ("old", "mine"),
        Trust.TRUSTED,
        True,
    )


def test_restoring_a_merged_memory_undoes_the_merge(doubles):
    ids, [entry] = merge_texts(doubles)
    revise.restore(doubles.database, ids[1])
    assert doubles.told(ids[0]) == []
    with pytest.raises(Conflict):
        undo_act(workspace_over(doubles.database), entry)
    doubles.digest_again()
    assert doubles.active() == set(ids)


def test_an_automatic_archive_is_undone(doubles):
    memory_id = doubles.write(ONE)
    revise.archive(doubles.database, memory_id)
    with doubles.database.write() as db:
        entry = audit.add(db, utc_now(), "night", audit.AuditAction.ARCHIVE, memory_id)
    undo_act(workspace_over(doubles.database), entry)
    assert memory_id in doubles.active()
    assert in_tail(doubles, memory_id)
    with pytest.raises(Conflict):
        undo_act(workspace_over(doubles.database), entry)


def test_a_person_merges_a_pair(doubles):
    older, newer = doubles.write(ONE), doubles.write(MORE)
    doubles.digest()
    assert settle_pair(workspace_over(doubles.database), get_waiting_pair(doubles).id, PairVerdict.MERGE).id == older
    assert doubles.active() == {older}
    assert doubles.told(older) == [("merged", MORE)]
    [entry] = entries(doubles)
    undo_act(workspace_over(doubles.database), entry)
    doubles.digest_again()
    assert doubles.active() == {older, newer}
    assert doubles.pairs() == []


def test_a_person_keeps_a_pair(doubles):
    both = {doubles.write(ONE), doubles.write(MORE)}
    doubles.digest()
    settle_pair(workspace_over(doubles.database), get_waiting_pair(doubles).id, PairVerdict.KEEP)
    doubles.digest_again()
    assert doubles.active() == both
    assert doubles.pairs() == []


@pytest.mark.parametrize("first", list(PairVerdict))
@pytest.mark.parametrize("second", list(PairVerdict))
def test_a_settled_pair_is_settled(doubles, first, second):
    doubles.write(ONE)
    doubles.write(MORE)
    doubles.digest()
    pair = get_waiting_pair(doubles)
    settle_pair(workspace_over(doubles.database), pair.id, first)
    with pytest.raises(Conflict):
        settle_pair(workspace_over(doubles.database), pair.id, second)


def test_a_pair_of_which_one_is_archived_cannot_be_settled(doubles):
    older = doubles.write(ONE)
    doubles.write(MORE)
    doubles.digest()
    pair = get_waiting_pair(doubles)
    revise.archive(doubles.database, older)
    with pytest.raises(Conflict):
        settle_pair(workspace_over(doubles.database), pair.id, PairVerdict.MERGE)
    with pytest.raises(NotFound):
        settle_pair(workspace_over(doubles.database), "no-such-pair", PairVerdict.MERGE)


def test_a_pin_goes_along_and_comes_back(doubles):
    older, newer = doubles.write(ONE), doubles.write(SAME)
    revise.edit(doubles.database, newer, Revision(pinned=True))
    doubles.digest()
    settle_pair(workspace_over(doubles.database), get_waiting_pair(doubles).id, PairVerdict.MERGE)
    assert doubles.get(older).pinned
    [entry] = entries(doubles)
    undo_act(workspace_over(doubles.database), entry)
    assert (doubles.get(older).pinned, doubles.get(newer).pinned) == (False, True)


def test_what_is_merged_into_a_candidate_lets_it_in(doubles):
    older = candidate(doubles)
    doubles.write(DOUBTFUL.lower())
    doubles.digest()
    settle_pair(workspace_over(doubles.database), get_waiting_pair(doubles).id, PairVerdict.MERGE)
    assert not doubles.get(older).candidate
    assert in_tail(doubles, older)


def test_a_candidate_that_is_let_in_is_found_by_words_and_compared(doubles):
    memory_id = candidate(doubles)
    doubles.digest()
    assert not in_tail(doubles, memory_id)
    settle_candidate(workspace_over(doubles.database), memory_id, CandidateVerdict.ACCEPT)
    assert not doubles.get(memory_id).candidate
    assert in_tail(doubles, memory_id)
    with doubles.database.read() as db:
        assert work.count_pending(db)[Stage.DEDUP] == 1


def test_a_candidate_that_is_turned_down_is_archived(doubles):
    memory_id = candidate(doubles)
    settle_candidate(workspace_over(doubles.database), memory_id, CandidateVerdict.REJECT)
    assert doubles.active() == set()
    assert not in_tail(doubles, memory_id)


@pytest.mark.parametrize("verdict", list(CandidateVerdict))
def test_only_what_waits_is_judged(doubles, verdict):
    memory_id = candidate(doubles)
    settle_candidate(workspace_over(doubles.database), memory_id, verdict)
    known = doubles.write(ONE)
    for one in (memory_id, known):
        with pytest.raises(Conflict):
            settle_candidate(workspace_over(doubles.database), one, CandidateVerdict.ACCEPT)


def test_a_fact_that_waited_ends_the_one_that_holds(doubles):
    told = set_fact(doubles.database, KEY, 5433, Draft("", occurred_at="2026-01-01T00:00:00.000Z"), REVIEW)
    draft = Draft("", source=Source.AMBIENT, occurred_at="2026-02-01T00:00:00.000Z")
    receipt = set_fact(doubles.database, KEY, 6543, draft, REVIEW)
    assert receipt.outcome is Outcome.CANDIDATE
    with doubles.database.read() as db:
        assert facts.find_holding(db, KEY, doubles.get(told.id).scope, utc_now()).id == told.id
    settle_candidate(workspace_over(doubles.database), receipt.id, CandidateVerdict.ACCEPT)
    assert doubles.get(told.id).valid_to == "2026-02-01T00:00:00.000Z"
    assert (receipt.id, "supersedes", told.id) in doubles.edges()
    with doubles.database.read() as db:
        assert facts.find_holding(db, KEY, doubles.get(told.id).scope, utc_now()).id == receipt.id


def test_a_fact_that_is_turned_down_changes_nothing(doubles):
    told = set_fact(doubles.database, KEY, 5433, Draft("", occurred_at="2026-01-01T00:00:00.000Z"), REVIEW)
    receipt = set_fact(doubles.database, KEY, 6543, Draft("", source=Source.AMBIENT), REVIEW)
    settle_candidate(workspace_over(doubles.database), receipt.id, CandidateVerdict.REJECT)
    assert doubles.get(told.id).valid_to is None
    assert doubles.edges() == []


def test_purging_the_one_that_speaks_takes_what_it_speaks_for(doubles):
    merge_texts(doubles, SAME, THIRD)
    older = doubles.active().pop()
    revise.purge(doubles.database, older)
    with doubles.database.read() as db:
        for table in ("memory", "history", "edge", "pair", "admission"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
        assert {entry.detail.get("before") for entry in audit.page(db, 10, None)} == {None}


def test_purging_the_one_that_is_spoken_for_leaves_nothing_of_it(doubles):
    ids, _ = merge_texts(doubles, SAME, tags=("flumadiddle",), importance=0.9)
    assert "flumadiddle" in doubles.get(ids[0]).tags
    revise.purge(doubles.database, ids[1])
    survivor = doubles.get(ids[0])
    assert (survivor.tags, survivor.importance, survivor.merge_count) == (("old",), 0.4, 0)
    assert doubles.told(ids[0]) == []
    with doubles.database.read() as db:
        assert "flumadiddle" not in "\n".join(db.iterdump())


def test_a_decision_holds_no_word_of_what_it_was_about(doubles):
    accept(doubles.database, Draft("ok flumadiddle", source=Source.AMBIENT))
    accept(doubles.database, Draft("password=flumadiddle1!Xy", source=Source.AMBIENT))
    with doubles.database.read() as db:
        assert {decision.outcome for _, decision in review.page_decisions(db, None, 10, None)} == {Outcome.REJECTED}
        assert "flumadiddle" not in "\n".join(db.iterdump())


def test_the_history_of_an_undone_merge_keeps_what_else_happened(doubles):
    ids, [entry] = merge_texts(doubles)
    doubles.write(ONE, tags=("again",))
    undo_act(workspace_over(doubles.database), entry)
    with doubles.database.read() as db:
        [event] = history.of(db, doubles.get(ids[0]).seq)
    assert (event.event, event.content, event.detail["tags"]) == ("merged", None, ["again"])
    assert doubles.get(ids[0]).merge_count == 1
