"""Turns of people and conclusions are embedded in the background; sessions are then also found by their meaning."""

import shutil

import pytest

from pipeline.features.indexing.job import erase_deleted_turns
from pipeline.kernel.records import Stage
from pipeline.kernel.store import conclusions, languages, turns
from pipeline.kernel.store.conclusions import ConclusionKind, NewConclusion
from pipeline.kernel.store.turns import Message, Role
from pipeline.sessions.search_usecases import search_sessions

AT = "2026-03-04T12:00:00.000Z"
# They are near each other for the fake encoder, and have no indexed word in common.
SAID, ASKED = "What was it about that quagga, again?", "zebra: what was it about that again"


@pytest.fixture
def keep(container):
    def keep(session_id, *texts):
        roles = (Role.USER, Role.ASSISTANT)
        messages = [Message(session_id, roles[number % 2], text, AT) for number, text in enumerate(texts)]
        with container.databases.get("default", create=True).write() as db:
            return turns.add(db, messages)

    return keep


@pytest.fixture
def find(container):
    def find(text):
        hits = search_sessions(container.workspace("default"), container.contexts, text)
        return [(hit.session_id, hit.quote) for hit in hits]

    return find


@pytest.fixture
def embed(worker, digested):
    def embed():
        queued = worker.context("default").repair_turn_vectors()
        digested()
        return queued

    return embed


def test_a_session_without_a_word_of_the_query_is_found_by_its_meaning(keep, find, embed):
    keep("s1", SAID, "Nothing")
    keep("s2", "Ports of billing", "4711")
    assert find(ASKED) == []
    assert embed() == 2
    assert find(ASKED)[0] == ("s1", SAID)
    assert embed() == 0, "what is embedded is not queued again"


def test_a_conclusion_is_embedded_under_the_turn_that_it_comes_from(worker, container, keep, find, embed):
    _, answer = keep("s1", "Ports", "A long answer about billing")
    with container.databases.get("default").write() as db:
        conclusions.replace(db, "s1", [NewConclusion("s1", answer, ConclusionKind.DECISION, SAID, (), AT)])
    embed()
    assert worker.turn_vectors("default").seqs() == {answer - 1, answer}
    assert find(ASKED) == [("s1", "A long answer about billing")]


def test_messages_are_embedded_again_after_an_encoder_change(container, keep, embed):
    said, _ = keep("s1", SAID, "Nothing")
    embed()
    with container.databases.get("default").write() as db:
        languages.record_other_languages(db, "5 of 9 memories", embed_again=True)
    with container.databases.get("default").read() as db:
        assert turns.list_queued_seqs(db) == {said}


def test_deleted_turns_leave_the_vectors_and_a_lost_table_is_made_again(worker, container, keep, find, embed):
    seqs = keep("s1", SAID, "Nothing")
    keep("s2", "Ports of billing", "4711")
    embed()
    with container.databases.get("default").write() as db:
        turns.forget(db, seqs)
    assert find(ASKED) == [] or all(session_id != "s1" for session_id, _ in find(ASKED))
    worker.stages("default")[Stage.PURGE].erase_turns()
    table = worker.turn_vectors("default")
    assert table.seqs() == {seqs[-1] + 1}
    shutil.rmtree(worker.settings.paths.workspace("default").turn_vectors)
    assert embed() == 1
    assert worker.turn_vectors("default").seqs() == {seqs[-1] + 1}


def test_a_turn_that_is_deleted_while_it_is_encoded_gets_no_vector(worker, container, keep, monkeypatch, digested):
    (seq,) = keep("s1", SAID)
    encoder = worker.encoder("default")
    encode = encoder.encode_documents

    def encode_then_forget(texts):
        with container.databases.get("default").write() as db:
            turns.forget(db, [seq])
        return encode(texts)

    monkeypatch.setattr(encoder, "encode_documents", encode_then_forget)
    worker.context("default").repair_turn_vectors()
    digested()
    table = worker.turn_vectors("default")
    assert not table.exists() or table.seqs() == set()


def test_a_workspace_without_turns_has_no_table(client, worker, embed):
    client.write("The port is 8123")
    assert embed() == 0
    paths = worker.settings.paths.workspace("default")
    assert not paths.turn_vectors.exists()
    assert not paths.turn_segments.exists()


def test_the_vectors_job_follows_the_segment_of_many_turns(container, worker, keep):
    keep("s1", *(f"Filler number {number}" for number in range(600)))
    context = worker.context("default")
    assert context.rebuild_turn_segment() == 600
    with container.databases.get("default").read() as db:
        requested = db.execute("SELECT name FROM job_run WHERE started_at IS NULL").fetchall()
    assert requested == [("vectors",)]


def test_erasing_without_a_table_does_nothing(worker, keep):
    keep("s1", SAID)
    erase_deleted_turns(worker.databases.get("default"), worker.stages("default")[Stage.PURGE].erase_turns.args[1])
