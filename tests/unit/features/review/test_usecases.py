"""What a person decides about pairs, candidates and automatic acts, and what taking it back restores."""

import pytest

from pipeline.features.review import store as review
from pipeline.features.review.usecases import CandidateVerdict, PairVerdict, settle_candidate, settle_pair, undo_act
from pipeline.kernel.errors import Conflict, NotFound
from pipeline.kernel.records import Draft, FactKey, Kind, Outcome, Revision, Sensitivity, Source, Stage, Trust, Viewer
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.store import audit, duplicates, facts, history, index_state, work
from pipeline.kernel.times import utc_now
from pipeline.write import revise
from pipeline.write.accept import accept
from pipeline.write.facts import set_fact
from tests.fakes.angles import DedupStore
from tests.fakes.in_process import dump, scratch_database, workspace_over

ONE = "The build runs nightly on the small server."
SAME = "the build runs nightly on the small server"
THIRD = "The build runs nightly on the small server!"
MORE = "The build runs nightly on the small server and mails a report."
DOUBTFUL = "Deploys of the shop wait for the tests"
REVIEW = WritePolicy(review=True)
KEY = FactKey("staging", "port")


@pytest.fixture
def dedup_store():
    with scratch_database() as database:
        dedup_store = DedupStore(database)
        yield dedup_store
        dedup_store.close()


def merge_texts(dedup_store, *texts, **fields):
    """Write a memory and duplicates of it, merge them, and return the ids and the audit entries, oldest first."""
    ids = [dedup_store.write(ONE, importance=0.4, tags=("old",), source=Source.IMPORT)]
    ids += [dedup_store.write(text, **fields) for text in texts or (SAME,)]
    dedup_store.digest()
    assert dedup_store.active() == {ids[0]}
    return ids, entries(dedup_store)


def entries(dedup_store):
    with dedup_store.database.read() as db:
        return [entry.id for entry in reversed(audit.page(db, 100, None))]


def get_waiting_pair(dedup_store):
    with dedup_store.database.read() as db:
        [(pair_id,)] = db.execute("SELECT id FROM pair WHERE state = 'waiting'").fetchall()
        return duplicates.get(db, pair_id)


def snapshot_fields(memory):
    return memory.content, memory.tags, memory.importance, memory.trust, memory.merge_count, memory.pinned


def candidate(dedup_store, text=DOUBTFUL):
    memory_id = dedup_store.write(text, source=Source.AMBIENT, policy=REVIEW)
    assert dedup_store.get(memory_id).candidate
    return memory_id


def in_tail(dedup_store, memory_id):
    seq = dedup_store.get(memory_id).seq
    with dedup_store.database.read() as db:
        return seq in {row[0] for row in index_state.list_tail_after(db, 0)}


def test_undoing_a_merge_restores_both(dedup_store):
    older = dedup_store.write(ONE, importance=0.4, tags=("old",), source=Source.IMPORT)
    newer = dedup_store.write(SAME, importance=0.9, tags=("new",))
    before = snapshot_fields(dedup_store.get(older)), snapshot_fields(dedup_store.get(newer))
    dedup_store.digest()
    assert dedup_store.get(older).trust is Trust.TRUSTED
    [entry] = entries(dedup_store)
    assert undo_act(workspace_over(dedup_store.database), entry).id == newer
    assert (snapshot_fields(dedup_store.get(older)), snapshot_fields(dedup_store.get(newer))) == before
    assert (dedup_store.list_history(older), dedup_store.list_history(newer), dedup_store.edges()) == ([], [], [])
    assert in_tail(dedup_store, newer)


def test_undone_merge_is_not_merged_again(dedup_store):
    ids, [entry] = merge_texts(dedup_store)
    undo_act(workspace_over(dedup_store.database), entry)
    dedup_store.digest_again()
    assert dedup_store.active() == set(ids)
    assert dedup_store.pairs() == []


def test_undone_merge_is_not_merged_indirectly(dedup_store):
    oldest = dedup_store.write(ONE, 0.5)
    older, newer = dedup_store.write(SAME), dedup_store.write(THIRD)
    dedup_store.digest()
    [entry] = entries(dedup_store)
    undo_act(workspace_over(dedup_store.database), entry)
    for text in (ONE, SAME, THIRD):
        dedup_store.encoder.point(text, 1.0)
    with dedup_store.database.write() as db:
        work.add(db, [dedup_store.get(one).seq for one in (oldest, older, newer)], [Stage.EMBED], 0.0)
    dedup_store.embed()
    # The one that was kept apart is looked at last: by then the other is a part of the oldest.
    dedup_store.digest()
    assert newer in dedup_store.active()
    assert dedup_store.merges()[-1] == (older, oldest)


def test_undoing_twice_is_a_conflict(dedup_store):
    _, [entry] = merge_texts(dedup_store)
    undo_act(workspace_over(dedup_store.database), entry)
    with pytest.raises(Conflict):
        undo_act(workspace_over(dedup_store.database), entry)


@pytest.mark.parametrize("purged", [0, 1])
def test_after_a_purge_there_is_nothing_to_undo(dedup_store, purged):
    ids, [entry] = merge_texts(dedup_store)
    revise.purge(dedup_store.database, ids[purged])
    with pytest.raises(NotFound):
        undo_act(workspace_over(dedup_store.database), entry)


def test_nothing_is_undone_where_the_text_was_written_again(dedup_store):
    ids, [entry] = merge_texts(dedup_store)
    dedup_store.write(SAME)
    before = dedup_store.state()
    with pytest.raises(Conflict):
        undo_act(workspace_over(dedup_store.database), entry)
    assert dedup_store.state() == before
    assert dedup_store.get(ids[1]).archived_at is not None


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_merges_are_undone_in_any_order(dedup_store, order):
    older = dedup_store.write(ONE, importance=0.4, tags=("old",), source=Source.IMPORT)
    before = snapshot_fields(dedup_store.get(older))
    dedup_store.write(SAME, importance=0.8, tags=("both", "one"))
    dedup_store.write(THIRD, importance=0.9, tags=("both", "other"))
    dedup_store.digest()
    assert dedup_store.get(older).tags == ("old", "both", "one", "other")
    found = entries(dedup_store)
    undo_act(workspace_over(dedup_store.database), found[order[0]])
    left = dedup_store.get(older)
    assert left.importance == (0.9 if order[0] == 0 else 0.8)
    assert left.tags == ("old", "both", "other" if order[0] == 0 else "one")
    assert left.trust is Trust.TRUSTED
    undo_act(workspace_over(dedup_store.database), found[order[1]])
    assert snapshot_fields(dedup_store.get(older)) == before


def test_undo_of_a_merge_keeps_later_edits(dedup_store):
    ids, [entry] = merge_texts(dedup_store, SAME, source=Source.AGENT, importance=0.9, tags=("new",))
    revision = Revision(importance=0.2, tags=("old", "mine"), trust=Trust.TRUSTED, pinned=True)
    revise.edit(dedup_store.database, ids[0], revision)
    undo_act(workspace_over(dedup_store.database), entry)
    survivor = dedup_store.get(ids[0])
    assert (survivor.importance, survivor.tags, survivor.trust, survivor.pinned) == (
        0.2,
        ("old", "mine"),
        Trust.TRUSTED,
        True,
    )


def test_restoring_a_merged_memory_undoes_the_merge(dedup_store):
    ids, [entry] = merge_texts(dedup_store)
    revise.restore(dedup_store.database, ids[1])
    assert dedup_store.list_history(ids[0]) == []
    with pytest.raises(Conflict):
        undo_act(workspace_over(dedup_store.database), entry)
    dedup_store.digest_again()
    assert dedup_store.active() == set(ids)


def test_an_automatic_archive_is_undone(dedup_store):
    memory_id = dedup_store.write(ONE)
    revise.archive(dedup_store.database, memory_id)
    with dedup_store.database.write() as db:
        entry = audit.add(db, utc_now(), "night", audit.AuditAction.ARCHIVE, memory_id)
    undo_act(workspace_over(dedup_store.database), entry)
    assert memory_id in dedup_store.active()
    assert in_tail(dedup_store, memory_id)
    with pytest.raises(Conflict):
        undo_act(workspace_over(dedup_store.database), entry)


def test_a_person_merges_a_pair(dedup_store):
    older, newer = dedup_store.write(ONE), dedup_store.write(MORE)
    dedup_store.digest()
    assert (
        settle_pair(workspace_over(dedup_store.database), get_waiting_pair(dedup_store).id, PairVerdict.MERGE).id
        == newer
    )
    assert dedup_store.active() == {newer}
    assert dedup_store.list_history(newer) == [("merged", ONE)]
    [entry] = entries(dedup_store)
    undo_act(workspace_over(dedup_store.database), entry)
    dedup_store.digest_again()
    assert dedup_store.active() == {older, newer}
    assert dedup_store.pairs() == []


def test_a_person_keeps_a_pair(dedup_store):
    both = {dedup_store.write(ONE), dedup_store.write(MORE)}
    dedup_store.digest()
    settle_pair(workspace_over(dedup_store.database), get_waiting_pair(dedup_store).id, PairVerdict.KEEP)
    dedup_store.digest_again()
    assert dedup_store.active() == both
    assert dedup_store.pairs() == []


@pytest.mark.parametrize("first", list(PairVerdict))
@pytest.mark.parametrize("second", list(PairVerdict))
def test_a_settled_pair_is_settled(dedup_store, first, second):
    dedup_store.write(ONE)
    dedup_store.write(MORE)
    dedup_store.digest()
    pair = get_waiting_pair(dedup_store)
    settle_pair(workspace_over(dedup_store.database), pair.id, first)
    with pytest.raises(Conflict):
        settle_pair(workspace_over(dedup_store.database), pair.id, second)


def test_a_pair_of_which_one_is_archived_cannot_be_settled(dedup_store):
    older = dedup_store.write(ONE)
    dedup_store.write(MORE)
    dedup_store.digest()
    pair = get_waiting_pair(dedup_store)
    revise.archive(dedup_store.database, older)
    with pytest.raises(Conflict):
        settle_pair(workspace_over(dedup_store.database), pair.id, PairVerdict.MERGE)
    with pytest.raises(NotFound):
        settle_pair(workspace_over(dedup_store.database), "no-such-pair", PairVerdict.MERGE)


def test_a_pin_goes_along_and_comes_back(dedup_store):
    older, newer = dedup_store.write(ONE), dedup_store.write(MORE)
    revise.edit(dedup_store.database, older, Revision(pinned=True))
    dedup_store.digest()
    settle_pair(workspace_over(dedup_store.database), get_waiting_pair(dedup_store).id, PairVerdict.MERGE)
    assert dedup_store.get(newer).pinned
    [entry] = entries(dedup_store)
    undo_act(workspace_over(dedup_store.database), entry)
    assert (dedup_store.get(older).pinned, dedup_store.get(newer).pinned) == (True, False)


def test_merged_duplicates_keep_stronger_fields_and_undo_restores_them(dedup_store):
    fields = {"kind": Kind.LESSON, "expires_at": None}
    older = dedup_store.write(ONE, details={"severity": "warning"}, **fields | {"expires_at": "2099-01-01T00:00:00Z"})
    newer = dedup_store.write(SAME, details={"severity": "critical"}, sensitivity=Sensitivity.PRIVATE, **fields)
    before = dedup_store.get(older)
    dedup_store.digest()
    merged = dedup_store.get(older)
    assert dedup_store.active() == {older}
    assert (merged.details["severity"], merged.sensitivity, merged.expires_at) == ("critical", "private", None)
    [entry] = entries(dedup_store)
    undo_act(workspace_over(dedup_store.database), entry)
    restored = dedup_store.get(older)
    assert (restored.details, restored.sensitivity, restored.expires_at) == (
        before.details,
        before.sensitivity,
        before.expires_at,
    )
    assert dedup_store.get(newer).details["severity"] == "critical"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_severity_of_another_repetition_outlives_an_undone_merge(dedup_store, order):
    older = dedup_store.write(ONE, kind=Kind.LESSON, details={"severity": "info"})
    for text in (SAME, THIRD):
        dedup_store.write(text, kind=Kind.LESSON, details={"severity": "critical"})
        dedup_store.digest()
    merges = entries(dedup_store)
    undo_act(workspace_over(dedup_store.database), merges[order[0]])
    assert dedup_store.get(older).details["severity"] == "critical"
    undo_act(workspace_over(dedup_store.database), merges[order[1]])
    assert dedup_store.get(older).details["severity"] == "info"


def test_a_severity_that_a_person_lowered_later_is_kept(dedup_store):
    older = dedup_store.write(ONE, kind=Kind.LESSON, details={"severity": "warning"})
    dedup_store.write(SAME, kind=Kind.LESSON, details={"severity": "critical"})
    dedup_store.digest()
    revise.edit(dedup_store.database, older, Revision(details={"severity": "info"}))
    undo_act(workspace_over(dedup_store.database), entries(dedup_store)[0])
    assert dedup_store.get(older).details["severity"] == "info"


def test_merge_into_a_candidate_accepts_it(dedup_store):
    older = candidate(dedup_store)
    dedup_store.write(DOUBTFUL.lower(), occurred_at="2024-01-01T00:00:00.000Z")
    dedup_store.digest()
    settle_pair(workspace_over(dedup_store.database), get_waiting_pair(dedup_store).id, PairVerdict.MERGE)
    assert not dedup_store.get(older).candidate
    assert in_tail(dedup_store, older)


def test_accepted_candidate_is_indexed_and_compared(dedup_store):
    memory_id = candidate(dedup_store)
    dedup_store.digest()
    assert not in_tail(dedup_store, memory_id)
    settle_candidate(workspace_over(dedup_store.database), memory_id, CandidateVerdict.ACCEPT)
    assert not dedup_store.get(memory_id).candidate
    assert in_tail(dedup_store, memory_id)
    with dedup_store.database.read() as db:
        assert work.count_pending(db)[Stage.DEDUP] == 1


def test_rejected_candidate_is_archived_and_not_indexed(dedup_store):
    memory_id = candidate(dedup_store)
    settle_candidate(workspace_over(dedup_store.database), memory_id, CandidateVerdict.REJECT)
    assert dedup_store.active() == set()
    assert not in_tail(dedup_store, memory_id)


@pytest.mark.parametrize("verdict", list(CandidateVerdict))
def test_only_waiting_candidates_can_be_settled(dedup_store, verdict):
    memory_id = candidate(dedup_store)
    settle_candidate(workspace_over(dedup_store.database), memory_id, verdict)
    known = dedup_store.write(ONE)
    for one in (memory_id, known):
        with pytest.raises(Conflict):
            settle_candidate(workspace_over(dedup_store.database), one, CandidateVerdict.ACCEPT)


def test_accepted_fact_ends_the_current_value(dedup_store):
    told = set_fact(dedup_store.database, KEY, 5433, Draft("", occurred_at="2026-01-01T00:00:00.000Z"), REVIEW)
    draft = Draft("", source=Source.AMBIENT, occurred_at="2026-02-01T00:00:00.000Z")
    receipt = set_fact(dedup_store.database, KEY, 6543, draft, REVIEW)
    assert receipt.outcome is Outcome.CANDIDATE
    with dedup_store.database.read() as db:
        assert facts.find_valid(db, KEY, dedup_store.get(told.id).scope, utc_now()).id == told.id
    settle_candidate(workspace_over(dedup_store.database), receipt.id, CandidateVerdict.ACCEPT)
    assert dedup_store.get(told.id).valid_to == "2026-02-01T00:00:00.000Z"
    assert (receipt.id, "supersedes", told.id) in dedup_store.edges()
    with dedup_store.database.read() as db:
        assert facts.find_valid(db, KEY, dedup_store.get(told.id).scope, utc_now()).id == receipt.id


def test_rejected_fact_candidate_changes_nothing(dedup_store):
    told = set_fact(dedup_store.database, KEY, 5433, Draft("", occurred_at="2026-01-01T00:00:00.000Z"), REVIEW)
    receipt = set_fact(dedup_store.database, KEY, 6543, Draft("", source=Source.AMBIENT), REVIEW)
    settle_candidate(workspace_over(dedup_store.database), receipt.id, CandidateVerdict.REJECT)
    assert dedup_store.get(told.id).valid_to is None
    assert dedup_store.edges() == []


def test_purge_of_a_survivor_purges_its_merged_duplicates(dedup_store):
    merge_texts(dedup_store, SAME, THIRD)
    older = dedup_store.active().pop()
    revise.purge(dedup_store.database, older)
    with dedup_store.database.read() as db:
        for table in ("memory", "history", "edge", "pair", "admission"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
        assert {entry.detail.get("before") for entry in audit.page(db, 10, None)} == {None}


def test_purge_of_a_merged_duplicate_erases_its_traces(dedup_store):
    ids, _ = merge_texts(dedup_store, SAME, tags=("flumadiddle",), importance=0.9)
    assert "flumadiddle" in dedup_store.get(ids[0]).tags
    revise.purge(dedup_store.database, ids[1])
    survivor = dedup_store.get(ids[0])
    assert (survivor.tags, survivor.importance, survivor.merge_count) == (("old",), 0.4, 0)
    assert dedup_store.list_history(ids[0]) == []
    with dedup_store.database.read() as db:
        assert "flumadiddle" not in "\n".join(dump(db))


def test_rejected_text_is_not_stored_in_the_decision(dedup_store):
    accept(dedup_store.database, Draft("ok flumadiddle", source=Source.AMBIENT))
    accept(dedup_store.database, Draft("password=flumadiddle1!Xy", source=Source.AMBIENT))
    with dedup_store.database.read() as db:
        decisions = review.page_decisions(db, None, Viewer(), 10, None)
        assert {decision.outcome for _, decision in decisions} == {Outcome.REJECTED}
        assert "flumadiddle" not in "\n".join(dump(db))


def test_undone_merge_keeps_later_history_entries(dedup_store):
    ids, [entry] = merge_texts(dedup_store)
    dedup_store.write(ONE, tags=("again",))
    undo_act(workspace_over(dedup_store.database), entry)
    with dedup_store.database.read() as db:
        [event] = history.of(db, dedup_store.get(ids[0]).seq)
    assert (event.event, event.content, event.detail["tags"]) == ("merged", None, ["again"])
    assert dedup_store.get(ids[0]).merge_count == 1
