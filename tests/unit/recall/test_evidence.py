"""What speaks for each candidate, read from the indexes and what stands about it."""

from datetime import UTC, datetime

import numpy as np
import pytest

from pipeline.index.row_arrays import NO_ROWS
from pipeline.kernel.records import Kind
from pipeline.kernel.records.recall import Channel
from pipeline.recall.evidence import Candidates, find_lexical_candidates, gather_evidence
from pipeline.recall.query import parse_query
from pipeline.write.revise import archive, purge

KEY = {"subject": "user", "attribute": "favorite", "value": "zebra"}
NOW = datetime(2026, 3, 18, tzinfo=UTC)


@pytest.fixture
def conversation(workspace):
    """Six turns: 1 to 4 in one session, written out of order in time; 5 and 6 without one."""
    turns = [
        ("Ada: where does the zebra live?", "s", 1),
        ("Brendan: in Oostende, since last May", "s", 2),
        ("Ada: zebra and giraffe", "s", 4),
        ("Brendan: no zebra", "s", 3),
        ("zebra alone", None, 5),
        ("user favorite: zebra", None, 6),
    ]
    for content, session, day in turns:
        fields = {"kind": Kind.KEYED_FACT, "details": KEY} if content.startswith("user") else {}
        workspace.write(content, session_id=session, occurred_at=f"2026-03-{day:02d}T08:00:00.000Z", **fields)
    workspace.embed()
    return workspace


def gather(workspace, text, *, without=(), count=6):
    question = parse_query(text, NOW)
    with workspace.database.read() as db:
        lexical = None if Channel.LEXICAL in without else workspace.reader.lexical.search(db, question.tokens)
        workspace.reader.sessions.refresh(db)
        workspace.reader.ranking_features.refresh(db)
        dense = None
        if Channel.DENSE not in without:
            dense = workspace.dense.search(workspace.encoder.encode_query(text), (0, 1), 100)
        found = lexical and find_lexical_candidates(
            db, question, lexical, workspace.reader.ranking_features.visible, 100
        )
        candidates = Candidates(
            np.arange(1, count + 1), {}, lexical, dense, found.literal if found else {}, NO_ROWS, {}
        )
        return gather_evidence(workspace.reader.sessions, workspace.reader.ranking_features, question, candidates)


def test_neighbors_are_the_nearest_turns_of_other_speakers(conversation):
    evidence = gather(conversation, "zebra")
    # Turn 4 follows turn 2, and both are Brendan's.
    assert evidence.before.tolist() == [0, 1, 4, 0, 0, 0]
    assert evidence.after.tolist() == [2, 0, 0, 3, 0, 0]
    assert len(set(evidence.sessions[:4].tolist())) == 1
    assert len(set(evidence.sessions.tolist())) == 3


def test_fields_speak_for_their_memories(conversation):
    evidence = gather(conversation, "When did Ada see my zebra?")
    assert evidence.asks.tolist() == [True, False, False, False, False, False]


def test_question_without_special_features_sets_no_evidence_flags(conversation):
    evidence = gather(conversation, "Where is the zebra")
    for name in ("in_time_range", "literal"):
        assert not getattr(evidence, name).any(), name


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("zebra since 2026-03-04", {4, 5, 6}),
        ("zebra before 2026-03-02", {1}),
        ("zebra on 2026-03-03", {3}),
        ("zebra in the last 14 days", {4, 5, 6}),
        ("zebra last year", set()),
    ],
)
def test_time_in_a_question_marks_memories_of_that_time(conversation, text, days):
    of_turn = np.array([1, 2, 4, 3, 5, 6])
    assert set(of_turn[gather(conversation, text).in_time_range].tolist()) == days


def test_context_score_includes_neighboring_turns(conversation):
    evidence = gather(conversation, "where does the zebra live")
    assert evidence.context[1] > evidence.dense[1]
    assert evidence.context[4] == pytest.approx(evidence.dense[4], abs=0.01)


@pytest.mark.parametrize("channel", [Channel.LEXICAL, Channel.DENSE])
def test_a_channel_that_did_not_answer_says_nothing(conversation, channel):
    evidence = gather(conversation, "zebra", without=[channel])
    silent = {Channel.LEXICAL: ("lexical", "lengths"), Channel.DENSE: ("dense", "context")}[channel]
    for name in silent:
        assert not getattr(evidence, name).any(), name
    spoken = {Channel.LEXICAL: "dense", Channel.DENSE: "lexical"}[channel]
    assert getattr(evidence, spoken).any()


def test_memory_without_an_embedding_gets_no_dense_score(conversation):
    with conversation.table.exclusive():
        conversation.table.remove([5])
    assert gather(conversation, "zebra alone").dense[4] <= 0


@pytest.mark.parametrize("act", [archive, purge])
def test_deleted_turn_leaves_finite_evidence(conversation, act):
    act(conversation.database, conversation.find_ids("Oostende")[0])
    evidence = gather(conversation, "zebra")
    assert len(evidence.seqs) == 6
    assert np.isfinite(evidence.days).all()


def test_a_named_speaker_counts_and_only_episodes_can_be_too_short(workspace):
    ada = workspace.write("Ada: gateway port 8123", kind=Kind.EPISODE, session_id="s")
    ben = workspace.write("Ben: gateway port 9000", kind=Kind.EPISODE, session_id="s")
    fact = workspace.write("gateway port 7000", kind=Kind.FACT)
    hits = workspace.ask("which gateway port did Ada name, dear assistant", explain=True, min_relevance=0.0).hits
    parts = {hit.memory.id: hit.signals.parts for hit in hits}
    assert parts[ada]["speaker"] > 0 == parts[ben]["speaker"] == parts[fact]["speaker"]
    assert parts[ada]["length"] == parts[ben]["length"] < 0 == parts[fact]["length"]


def test_an_assistant_is_no_speaker_that_a_query_names(workspace):
    workspace.write("assistant: gateway port 8123", kind=Kind.EPISODE, session_id="s")
    (hit,) = workspace.ask("which gateway port did the assistant name", explain=True, min_relevance=0.0).hits
    assert hit.signals.parts["speaker"] == 0
