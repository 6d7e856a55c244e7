"""Digestion: who fails pays alone, and what is not a memory's fault costs it no try."""

import time

import pytest

from pipeline.features.indexing.stage import EmbedStage
from pipeline.index.vectors import VectorTable
from pipeline.kernel.errors import EncoderUnavailable, IndexUnavailable, StoreBusy
from pipeline.kernel.records import Draft, Revision, Stage
from pipeline.kernel.stage_loop import DigestPolicy, digest, request_no_help
from pipeline.kernel.store import index_state, work
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.encoder import HashEncoder
from tests.fakes.in_process import accept_batch, folder_of, scratch_database

POLICY = DigestPolicy(batch=4, lease_s=60, backoff_s=100)


class Runner:
    """Completes what it is given, but for the memories that it is told to trip over."""

    def __init__(self, database, bad=(), error=None):
        self.database = database
        self.bad = set(bad)
        self.error = error or ValueError("bad memory")
        self.runs = []
        self.loads = 0

    def load(self):
        self.loads += 1

    def run(self, items, owner):
        self.runs.append([item.seq for item in items])
        if self.bad & {item.seq for item in items}:
            raise self.error
        with self.database.write() as db:
            work.complete(db, items, owner)


@pytest.fixture
def database():
    with scratch_database() as database:
        accept_batch(database, [Draft(f"memory {n}") for n in range(10)])
        yield database


def run(database, runner, until=None, log=None, stage=Stage.EMBED, share=request_no_help):
    log = [].append if log is None else log
    until = time.monotonic() + 60 if until is None else until
    return digest(database, stage, runner, "me", POLICY, log, until, share)


def counts(database):
    with database.read() as db:
        return work.count_pending(db)[Stage.EMBED], work.count_dead(db)[Stage.EMBED]


def attempts(database):
    with database.read() as db:
        return {a for (a,) in db.execute("SELECT attempts FROM work WHERE stage = 'embed'")}


def test_everything_is_worked_off_in_batches(database):
    runner = Runner(database)
    report = run(database, runner)
    assert [len(batch) for batch in runner.runs] == [4, 4, 2]
    assert (report.claimed, report.more, report.retry_in_s) == (10, False, None)
    assert counts(database) == (0, 0)


def test_without_work_no_model_is_loaded(database):
    runner = Runner(database)
    assert run(database, runner, stage=Stage.PURGE).claimed == 0
    assert runner.loads == 0


def test_a_turn_ends_in_time_and_says_that_there_is_more(database):
    report = run(database, Runner(database), until=0.0)
    assert (report.claimed, report.more) == (4, True)


def test_help_is_asked_for_once_as_soon_as_a_full_batch_is_done(database):
    runner, asked = Runner(database), []
    report = run(database, runner, share=lambda: asked.append(len(runner.runs)))
    assert asked == [1]
    assert report.shared


def test_less_than_a_batch_is_done_without_help(database):
    runner, asked = Runner(database), []
    with database.write() as db:
        db.execute("DELETE FROM work WHERE memory_seq > 3")
    assert not run(database, runner, share=lambda: asked.append(True)).shared
    assert asked == []


def test_no_help_is_asked_for_where_the_surroundings_fail(database):
    asked = []
    with pytest.raises(IndexUnavailable):
        run(
            database,
            Runner(database, bad=range(99), error=IndexUnavailable("x")),
            share=lambda: asked.append(True),
        )
    assert asked == []


def test_only_the_guilty_memory_of_a_batch_fails(database):
    messages = []
    report = run(database, Runner(database, bad=[3]), log=messages.append)
    assert counts(database) == (1, 0)
    assert messages == ["memory 3, embed: ValueError: bad memory (try 1 of 5)"]
    assert not report.more
    assert 90 < report.retry_in_s <= 100


@pytest.mark.parametrize("error", [StoreBusy("x"), IndexUnavailable("x"), EncoderUnavailable("x"), KeyboardInterrupt()])
def test_error_outside_the_memory_costs_no_attempt(database, error):
    with pytest.raises(type(error)):
        run(database, Runner(database, bad=range(99), error=error))
    assert counts(database) == (10, 0)
    assert attempts(database) == {0}


def test_a_model_that_cannot_be_loaded_claims_nothing(database, monkeypatch):
    runner = Runner(database)

    def load():
        raise EncoderUnavailable("not compiled")

    monkeypatch.setattr(runner, "load", load)
    with pytest.raises(EncoderUnavailable):
        run(database, runner)
    assert attempts(database) == {0}
    assert runner.runs == []


def test_after_five_tries_a_memory_is_given_up(database):
    messages, policy = [], DigestPolicy(batch=20, lease_s=60, backoff_s=0.0)
    runner = Runner(database, bad=[3])
    digest(database, Stage.EMBED, runner, "me", policy, messages.append, time.monotonic() + 60)
    assert counts(database) == (0, 1)
    assert [message.rsplit("(")[-1] for message in messages] == [
        "try 1 of 5)", "try 2 of 5)", "try 3 of 5)", "try 4 of 5)", "dead letter)"
    ]  # fmt: skip


class Embedding:
    """The real embed stage over a fake encoder, with something happening while it encodes."""

    def __init__(self, database, meanwhile):
        self.encoder = HashEncoder()
        self.table = VectorTable(folder_of(database) / "vectors.lance", "hash", self.encoder.dimension)
        encode = self.encoder.encode_documents

        def encode_documents(texts):
            meanwhile()
            return encode(texts)

        self.encoder.encode_documents = encode_documents
        self.stage = EmbedStage(database, lambda _encoder: self.table, lambda: self.encoder)


@pytest.mark.parametrize("event", ["edit", "purge"])
def test_no_vector_of_an_old_text_outlives_its_memory(event):
    with scratch_database() as database:
        memory = accept(database, Draft("old text")).id
        happened = []

        def meanwhile():
            if not happened:
                happened.append(event)
                if event == "edit":
                    revise.edit(database, memory, Revision(content="new text entirely"))
                else:
                    revise.purge(database, memory)

        embedding = Embedding(database, meanwhile)
        run(database, embedding.stage)
        with database.read() as db:
            expected = index_state.list_expected_passages(db, "hash")
        assert embedding.table.seqs() == set(expected) == ({1} if event == "edit" else set())
        if event == "edit":
            [(seq, cosine)] = embedding.table.nearest(embedding.encoder.encode_query("new text entirely"), 5)
            assert (seq, cosine) == (1, pytest.approx(1.0, abs=1e-5))


def test_every_passage_of_a_long_memory_is_stored():
    with scratch_database() as database:
        accept(database, Draft("word " * 1500))
        embedding = Embedding(database, lambda: None)
        run(database, embedding.stage)
        with database.read() as db:
            assert index_state.count_expected_passages(db, "hash") == embedding.table.count() > 1
