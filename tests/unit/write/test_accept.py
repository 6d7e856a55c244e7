"""The door's promises: one active memory a text, all or nothing, creation before anything else in the log."""

import itertools
import threading
from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from pipeline.features.review import store as review
from pipeline.kernel.errors import Conflict, InvalidField
from pipeline.kernel.records import (
    MAX_CONTENT_CHARS,
    Draft,
    EdgeDraft,
    EdgeKind,
    FactKey,
    Outcome,
    Revision,
    Scope,
    ScopeKind,
    Source,
    Stage,
    Trust,
    Viewer,
)
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.store import agent_sessions, edges as edges_table, history, index_state, memories, work
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.kernel.times import utc_now
from pipeline.prompt.render import Entry, render_block
from pipeline.text.memory_terms import memory_terms
from pipeline.text.normalize import content_hash
from pipeline.text.redaction import redact
from pipeline.write import revise
from pipeline.write.accept import accept
from pipeline.write.admission import REPEATS_TO_ADMIT
from pipeline.write.facts import set_fact
from tests.fakes.in_process import PROFILE, accept_batch, dump, scratch_database
from tests.fakes.properties import opens_stores

TEXTS = ["one", "two", "one  ", "o\u0301ne", "óne", "two\r\n"]
SCOPES = [None, Scope(ScopeKind.USER), Scope(ScopeKind.AGENT, "a"), Scope(ScopeKind.AGENT, "b")]
drafts = st.builds(Draft, content=st.sampled_from(TEXTS), scope=st.sampled_from(SCOPES))
operations = st.lists(
    st.one_of(
        st.tuples(st.just("write"), drafts),
        st.tuples(st.just("batch"), st.lists(drafts, max_size=4)),
        st.tuples(st.sampled_from(["archive", "restore", "purge"]), st.integers(0, 9)),
        st.tuples(st.just("edit"), st.integers(0, 9), st.sampled_from(TEXTS)),
    ),
    max_size=14,
)


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def perform(database, operation, ids):
    match operation:
        case ("write", draft):
            ids.append(accept(database, draft).id)
        case ("batch", batch):
            ids.extend(receipt.id for receipt in accept_batch(database, batch))
        case ("edit", number, text):
            if ids:
                revise.edit(database, ids[number % len(ids)], Revision(content=text))
        case ("purge", number):
            if ids:
                gone = ids[number % len(ids)]
                revise.purge(database, gone)
                ids[:] = [memory_id for memory_id in ids if memory_id != gone]
        case (verb, number):
            if ids:
                getattr(revise, verb)(database, ids[number % len(ids)])


def check_invariants(db):
    twins = db.execute(
        "SELECT scope_kind, scope_id, content_hash FROM memory WHERE archived_at IS NULL "
        "GROUP BY 1, 2, 3 HAVING count(*) > 1"
    )
    assert twins.fetchall() == []
    for content, stored in db.execute("SELECT content, content_hash FROM memory"):
        assert content_hash(content) == stored
    # No segment exists, so the tail must hold exactly what is active.
    active = {row[0] for row in db.execute("SELECT seq FROM memory WHERE archived_at IS NULL")}
    held = {seq: tokens for seq, _, tokens in index_state.list_tail_after(db, 0)}
    assert held.keys() == active
    for seq, memory in memories.by_seqs(db, active).items():
        assert held[seq] == memory_terms(memory)
    known = {row[0] for row in db.execute("SELECT seq FROM memory")}
    for seq, stage in db.execute("SELECT memory_seq, stage FROM work"):
        assert (seq in known) == (stage != Stage.PURGE)
    created = set()
    for op, memory_id in db.execute("SELECT op, memory_id FROM change ORDER BY seq"):
        if op == "create":
            created.add(memory_id)
        assert memory_id in created, f"{op} before create"
    stamps = [row[0] for row in db.execute("SELECT hlc FROM change ORDER BY seq")]
    assert all(a < b for a, b in itertools.pairwise(stamps))


@opens_stores
@given(operations)
def test_store_invariants_survive_any_history(history):
    with scratch_database() as database:
        ids = []
        for operation in history:
            try:
                perform(database, operation, ids)
            except Conflict:
                assert operation[0] in ("restore", "edit")
        with database.read() as db:
            check_invariants(db)


@pytest.mark.files
def test_racing_writers_of_one_text_make_one_memory(database):
    start = threading.Barrier(4)
    receipts = []

    def write(number):
        # Each with a connection of its own, as another process would have.
        own = SqliteDatabase(database.file, PROFILE, create=False)
        start.wait()
        receipts.extend(accept(own, Draft(f"text {n % 5}", tags=(f"t{number}",))) for n in range(15))
        own.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(receipt.outcome is Outcome.CREATED for receipt in receipts) == 5
    assert len({receipt.id for receipt in receipts}) == 5
    with database.read() as db:
        check_invariants(db)
        assert db.execute("SELECT sum(merge_count) FROM memory").fetchone()[0] == 55
        assert all(len(tags.split(",")) == 4 for (tags,) in db.execute("SELECT tags FROM memory"))


@given(st.lists(st.sampled_from(["good", "fine", " ", "x" * 10_001]), min_size=1, max_size=5))
@opens_stores
def test_batch_is_stored_completely_or_not_at_all(contents):
    bad = [index for index, content in enumerate(contents) if content not in ("good", "fine")]
    with scratch_database() as database:
        batch = [Draft(content) for content in contents]
        if bad:
            with pytest.raises(InvalidField) as refusal:
                accept_batch(database, batch)
            assert refusal.value.errors[0].loc == f"items.{bad[0]}.content"
        else:
            assert len(accept_batch(database, batch)) == len(contents)
        with database.read() as db:
            stored = {row[0] for row in db.execute("SELECT content FROM memory")}
        assert stored == (set() if bad else set(contents))


def test_a_failure_inside_the_transaction_leaves_nothing(database, monkeypatch):
    def broken(*_args):
        raise RuntimeError("power cut")

    monkeypatch.setattr(work, "add", broken)
    with pytest.raises(RuntimeError):
        accept(database, Draft("text"))
    with database.read() as db:
        for table in ("memory", "tail", "change", "work", "history"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_merging_in_one_batch_keeps_every_tag(database):
    accept_batch(database, [Draft("text", tags=(f"t{n}",), importance=n / 10) for n in range(4)])
    with database.read() as db:
        [(tags, importance, merges)] = db.execute("SELECT tags, importance, merge_count FROM memory").fetchall()
    assert (tags, importance, merges) == ('["t0", "t1", "t2", "t3"]', 0.3, 3)


def test_redaction_that_lengthens_a_text_past_the_limit_is_refused(database):
    text = ("password=aB3$xY9 " * 1000)[:10_000].strip()
    assert len(redact(text).text) > MAX_CONTENT_CHARS >= len(text)
    with pytest.raises(InvalidField) as refusal:
        accept(database, Draft(text))
    assert "aB3$xY9" not in str(refusal.value)


# Admission: what is repeated, what is doubtful, who confirms what

DOUBTFUL = "Deploys of the shop wait for the tests"
CHATTER = "Let me look at the file"
REVIEW = WritePolicy(review=True)


def get_stored(database, memory_id):
    with database.read() as db:
        memory = memories.get(db, memory_id)
    assert memory is not None
    return memory


def render_stored(database, memory_id):
    block = render_block([Entry(get_stored(database, memory_id))], 2000, datetime.now(UTC))[0]
    assert block is not None
    return block


def offers(database, count, content=DOUBTFUL, source=Source.AMBIENT, policy=REVIEW):
    return [accept(database, Draft(content, source=source), policy) for _ in range(count)]


@pytest.mark.parametrize("source", [Source.AGENT, Source.AMBIENT, Source.USER])
@pytest.mark.parametrize("told_by", [Source.USER, Source.IMPORT])
def test_echo_of_a_shown_memory_is_merged_without_reinforcing_it(database, source, told_by):
    known = accept(database, Draft("The proxy listens on port 8123", source=told_by))
    before = get_stored(database, known.id)
    echo = accept(database, Draft(render_stored(database, known.id), source=source, importance=1.0, tags=("new",)))
    assert (echo.outcome, echo.id, echo.duplicate_of) == (Outcome.MERGED, known.id, known.id)
    assert get_stored(database, known.id) == before
    with database.read() as db:
        assert history.of(db, before.seq) == []
        assert db.execute("SELECT count(*) FROM memory").fetchone() == (1,)
        [(_, decision), _] = review.page_decisions(db, None, Viewer(), 10, None)
    assert (decision.outcome, decision.reasons) == (Outcome.MERGED, ("repeats what was shown",))


def test_echo_with_an_added_word_is_a_new_memory(database):
    known = accept(database, Draft("The proxy listens on port 8123"))
    added = accept(database, Draft(f"{render_stored(database, known.id)} on staging"))
    assert added.outcome is Outcome.CREATED


def test_echo_of_an_archived_memory_is_a_new_memory(database):
    known = accept(database, Draft("The proxy listens on port 8123"))
    block = render_stored(database, known.id)
    revise.archive(database, known.id)
    assert accept(database, Draft(block)).outcome is Outcome.CREATED


def test_an_agent_that_repeats_evidence_confirms_nothing(database):
    known = accept(database, Draft("The proxy listens on port 8123", source=Source.IMPORT))
    for source in (Source.AGENT, Source.AMBIENT, Source.SYNC, Source.IMPORT):
        assert accept(database, Draft("The proxy listens on port 8123", source=source)).id == known.id
    assert get_stored(database, known.id).trust is Trust.EVIDENCE
    accept(database, Draft("The proxy listens on port 8123", source=Source.USER))
    assert get_stored(database, known.id).trust is Trust.TRUSTED


def test_person_deriving_a_text_from_evidence_does_not_confirm_it(database):
    known = accept(database, Draft("The proxy listens on port 8123", source=Source.IMPORT))
    origin = accept(database, Draft("Somebody wrote that the proxy listens on 8123", source=Source.IMPORT))
    edges = (EdgeDraft(EdgeKind.DERIVED_FROM, origin.id),)
    accept(database, Draft("The proxy listens on port 8123", edges=edges))
    assert get_stored(database, known.id).trust is Trust.EVIDENCE


def test_a_repeated_text_brings_its_edges_along(database):
    known = accept(database, Draft("The proxy listens on port 8123"))
    other = accept(database, Draft("The proxy was moved"))
    accept(database, Draft("The proxy listens on port 8123", edges=(EdgeDraft(EdgeKind.SUPPORTS, other.id),)))
    with database.read() as db:
        [edge] = edges_table.of(db, get_stored(database, known.id).seq)
    assert (edge.kind, edge.other_id) == (EdgeKind.SUPPORTS, other.id)
    with pytest.raises(InvalidField):
        accept(database, Draft("The proxy was moved", edges=(EdgeDraft(EdgeKind.SUPPORTS, other.id),)))


def test_a_candidate_gets_in_when_it_is_offered_again_and_again(database):
    first, again = offers(database, 2)
    assert (first.outcome, again.outcome) == (Outcome.CANDIDATE, Outcome.MERGED)
    assert get_stored(database, first.id).candidate
    with database.read() as db:
        assert index_state.list_tail_after(db, 0) == []
    offers(database, REPEATS_TO_ADMIT - 1)
    assert not get_stored(database, first.id).candidate
    with database.read() as db:
        assert len(index_state.list_tail_after(db, 0)) == 1
        assert db.execute("SELECT count(*) FROM memory").fetchone() == (1,)


def test_rejected_text_is_accepted_after_repeated_offers(database):
    outcomes = [receipt.outcome for receipt in offers(database, REPEATS_TO_ADMIT + 1, policy=WritePolicy())]
    assert outcomes[:2] == [Outcome.REJECTED] * 2
    assert Outcome.CREATED in outcomes


def test_chatter_stays_out_however_often_it_is_offered(database):
    outcomes = {receipt.outcome for receipt in offers(database, 8, CHATTER, Source.AGENT, WritePolicy())}
    assert outcomes == {Outcome.REJECTED}


def test_a_person_lets_a_candidate_in_by_saying_it(database):
    [waiting] = offers(database, 1)
    said = accept(database, Draft(DOUBTFUL), REVIEW)
    assert (said.outcome, said.id) == (Outcome.MERGED, waiting.id)
    known = get_stored(database, waiting.id)
    assert (known.candidate, known.trust) == (False, Trust.TRUSTED)


def test_repeated_text_that_contradicts_a_fact_stays_a_candidate(database):
    set_fact(database, FactKey("staging", "port"), 5433, Draft("", occurred_at="2026-01-01T00:00:00.000Z"), REVIEW)
    text = "The staging port is 6543 behind the proxy of the shop"
    receipts = offers(database, 3 * REPEATS_TO_ADMIT, text, Source.AGENT)
    assert receipts[0].outcome is Outcome.CANDIDATE
    assert get_stored(database, receipts[0].id).candidate


def test_incognito_write_leaves_no_admission_record(database):
    with database.write() as db:
        agent_sessions.begin_incognito(db, "quiet", utc_now())
    with database.read() as db:
        before = dump(db)
    for content in (DOUBTFUL, CHATTER, "The proxy listens on port 8123"):
        for source in Source:
            receipt = accept(database, Draft(content, source=source, session_id="quiet"), REVIEW)
            assert (receipt.outcome, receipt.reason) == (Outcome.REJECTED, "incognito")
    with database.read() as db:
        assert dump(db) == before
    with database.write() as db:
        agent_sessions.end_incognito(db, "quiet")
    assert accept(database, Draft(DOUBTFUL, session_id="quiet")).outcome is Outcome.CREATED


def test_incognito_write_does_not_reinforce_a_memory(database):
    known = accept(database, Draft("The proxy listens on port 8123"))
    before = get_stored(database, known.id)
    for content in (before.content, render_stored(database, known.id)):
        accept(database, Draft(content, tags=("new",)), WritePolicy(incognito=True))
    assert get_stored(database, known.id) == before
