from collections import defaultdict

import pytest

from benchmarks import sde
from benchmarks.quality import Asked, Store

# Two sessions of two turns each; the answer needs a turn of both.
SESSIONS = {"a0": "a", "a1": "a", "b0": "b", "b1": "b"}
MEMORIES = {
    identity: {
        "content": f"user: {identity} settles on port 6543",
        "session_id": session,
        "occurred_at": "2026-01-05T10:00:00Z",
    }
    for identity, session in SESSIONS.items()
}
ASKED = Asked("Which port?", frozenset({"a1", "b1"}), stale=frozenset({"a0"}))
STORE = Store("store", MEMORIES, [ASKED])


@pytest.fixture
def figures():
    return defaultdict(list)


def test_sessions_are_ranked_by_their_best_turn(figures):
    sde.judge(STORE, ASKED, ["a0", "a1", "b0", "b1"], figures)
    assert figures["session recall_any@1"] == [True]
    assert figures["session recall_all@1"] == [False]
    assert figures["session recall_all@5"] == [True]
    assert figures["turn recall_any@1"] == [False]
    assert figures["turn recall_all@5"] == [True]


@pytest.mark.parametrize(("ranked", "first"), [(["a0", "a1"], True), (["b0", "a1", "a0"], False), ([], False)])
def test_a_stale_turn_counts_where_it_ranks_above_all_evidence(figures, ranked, first):
    sde.judge(STORE, ASKED, ranked, figures)
    assert figures["stale first"] == [first]


def test_the_strict_protocol_counts_an_empty_answer_as_a_miss(figures):
    sde.judge_strictly(ASKED, [], figures)
    sde.judge_strictly(ASKED, ["b1", "a1"], figures)
    assert figures["turn strict@10"] == [False, True]


def test_a_block_needs_the_words_that_evidence_adds_to_the_question(figures):
    sde.judge_block(STORE, ASKED, "It settles on 6543", figures)
    sde.judge_block(STORE, ASKED, "Which port?", figures)
    assert figures["block"] == [True, False]


def test_a_table_has_each_protocol_for_each_ranking():
    found = sde.ask_fts(STORE)
    table = sde.show("made-up", {"FTS5": found, "Reverie": found})
    assert "made-up, 1 questions" in table
    assert "| turn strict | Reverie | 0.000 | 1.000 | 1.000 | 1.000 |" in table
