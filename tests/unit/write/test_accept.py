"""The door's promises: one active memory a text, all or nothing, creation before anything else in the log."""

import itertools
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.analysis import memory_tokens
from pipeline.errors import Conflict, InvalidField
from pipeline.records import MAX_CONTENT_CHARS, Draft, Outcome, Scope, ScopeKind, Stage
from pipeline.redaction import redact
from pipeline.store import memories, tail, work
from pipeline.store.database import Database
from pipeline.write import revise
from pipeline.write.accept import accept, accept_batch
from pipeline.write.normalize import content_hash
from pipeline.write.revise import Revision
from tests.fakes.house import PROFILE, scratch_database

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


def holds_together(db):
    twins = db.execute(
        "SELECT scope_kind, scope_id, content_hash FROM memory WHERE archived_at IS NULL "
        "GROUP BY 1, 2, 3 HAVING count(*) > 1"
    )
    assert twins.fetchall() == []
    for content, stored in db.execute("SELECT content, content_hash FROM memory"):
        assert content_hash(content) == stored
    # No segment exists, so the tail must hold exactly what is active.
    active = {row[0] for row in db.execute("SELECT seq FROM memory WHERE archived_at IS NULL")}
    held = {seq: tokens for seq, _, tokens in tail.after(db, 0)}
    assert held.keys() == active
    for seq, memory in memories.by_seqs(db, active).items():
        assert held[seq] == memory_tokens(memory.content, memory.occurred_at)
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


@settings(max_examples=80)
@given(operations)
def test_the_store_holds_together_after_any_history(history):
    with scratch_database() as database:
        ids = []
        for operation in history:
            try:
                perform(database, operation, ids)
            except Conflict:
                assert operation[0] in ("restore", "edit")
        with database.read() as db:
            holds_together(db)


def test_racing_writers_of_one_text_make_one_memory(database):
    start = threading.Barrier(4)
    receipts = []

    def write(number):
        # Each with a connection of its own, as another process would have.
        own = Database(database.file, PROFILE, create=False)
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
        holds_together(db)
        assert db.execute("SELECT sum(merge_count) FROM memory").fetchone()[0] == 55
        assert all(len(tags.split(",")) == 4 for (tags,) in db.execute("SELECT tags FROM memory"))


@given(st.lists(st.sampled_from(["good", "fine", " ", "x" * 10_001]), min_size=1, max_size=5))
@settings(max_examples=30)
def test_a_batch_is_written_whole_or_not_at_all(contents):
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
