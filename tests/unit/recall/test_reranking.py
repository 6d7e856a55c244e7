import time
from dataclasses import replace

import pytest

from pipeline.kernel.errors import EncoderUnavailable
from pipeline.kernel.records.recall import ChannelState, Query, Step
from pipeline.recall.deadline import Deadline
from pipeline.recall.reranking import RERANKED
from pipeline.recall.search import search
from tests.fakes.recall_workspace import LONG_MS
from tests.fakes.reranker import WordReranker

QUESTION = "Which queue do the billing workers prefer?"


@pytest.fixture
def ids(workspace):
    """Memories by their last word; the last is the newest of two that share the most words with the question."""
    texts = {
        "decided": "The billing workers use a queue that was decided",
        "slow": "The billing queue was slow",
        "tested": "The billing workers use a queue that was tested",
    }
    stored = {word: workspace.write(text) for word, text in texts.items()}
    workspace.fold()
    workspace.embed()
    return stored


def use(workspace, reranker):
    workspace.reader = replace(workspace.reader, reranker=lambda: reranker)
    return reranker


def test_without_a_reranker_nothing_is_reported(workspace, ids):
    answer = workspace.ask(QUESTION)
    assert (answer.hits[0].memory.id, Step.RERANKER in answer.channels) == (ids["tested"], False)


def test_reranker_changes_the_order_and_the_explanation(workspace, ids):
    reranker = use(workspace, WordReranker("decided"))
    answer = workspace.ask(QUESTION, explain=True, min_relevance=0.0)
    assert answer.hits[0].memory.id == ids["decided"]
    assert answer.channels[Step.RERANKER].state is ChannelState.OK
    assert not answer.degraded
    assert len(reranker.read) == len(ids)
    parts = {hit.memory.id: hit.signals.parts["reranker"] for hit in answer.hits}
    assert parts == {ids["tested"]: 0, ids["slow"]: 0, ids["decided"]: 0.25}
    for hit in answer.hits:
        assert sum(hit.signals.parts.values()) == pytest.approx(hit.score, abs=1e-5)
    why = workspace.why(QUESTION, ids["decided"], min_relevance=0.0)
    assert (why.rank, why.signals.parts["reranker"]) == (1, 0.25)


def test_a_relevance_does_not_depend_on_the_reranker(workspace, ids):
    before = {hit.memory.id: hit.relevance for hit in workspace.ask(QUESTION, min_relevance=0.0).hits}
    use(workspace, WordReranker("decided"))
    after = workspace.ask(f" {QUESTION}", min_relevance=0.0).hits
    assert {hit.memory.id: hit.relevance for hit in after} == before


def test_equal_scores_change_nothing(workspace, ids):
    expected = workspace.find_ids(QUESTION)
    use(workspace, WordReranker("nowhere"))
    assert workspace.find_ids(f" {QUESTION}") == expected


def test_only_the_first_are_read(workspace):
    for number in range(RERANKED + 5):
        workspace.write(f"The billing queue number {number} is slow")
    workspace.fold()
    reranker = use(workspace, WordReranker("slow"))
    assert len(workspace.ask("the slow billing queue").hits) > 0
    assert len(reranker.read) == RERANKED


def test_the_only_memory_with_an_identifier_stays_first(workspace, ids):
    ticket = workspace.write("OPS-2004 is about something else")
    workspace.fold()
    use(workspace, WordReranker("decided"))
    assert workspace.find_ids("Which queue does OPS-2004 use?")[0] == ticket


def test_a_current_value_stays_above_an_outdated_one(workspace):
    old = workspace.write("The deploy branch is called `release`", occurred_at="2026-01-01T00:00:00.000Z")
    new = workspace.write("The deploy branch is called `main`", occurred_at="2026-02-01T00:00:00.000Z")
    workspace.fold()
    workspace.embed()
    use(workspace, WordReranker("release"))
    assert workspace.find_ids("What is the deploy branch called?") == [new, old]


class ShiftedClock:
    """The time of this machine, moved forward by what slow fakes pretend to take."""

    def __init__(self):
        self.shift_s = 0.0

    def __call__(self):
        return time.perf_counter() + self.shift_s


def test_a_slow_reranker_stops_at_the_deadline_and_is_reported_late(workspace, ids):
    expected = workspace.find_ids(QUESTION)
    clock = ShiftedClock()

    def take_long():
        clock.shift_s += LONG_MS * 0.6 / 1000

    reranker = use(workspace, WordReranker("decided", take_long))
    query = Query(f" {QUESTION}", budget_ms=LONG_MS)
    answer = search(workspace.reader, query, Deadline(LONG_MS, clock))
    assert len(reranker.read) == 2
    assert answer.channels[Step.RERANKER].state is ChannelState.LATE
    assert answer.degraded
    assert [hit.memory.id for hit in answer.hits] == expected
    # It is not cached: the next question may have the time.
    fast = use(workspace, WordReranker("decided"))
    workspace.reader.costs.record(Step.RERANKER, 1.0)
    assert not search(workspace.reader, replace(query, budget_ms=LONG_MS * 100), Deadline(LONG_MS * 100)).degraded
    assert len(fast.read) == len(ids)


def test_a_reranker_that_was_measured_too_slow_does_not_begin(workspace, ids):
    reranker = use(workspace, WordReranker("decided"))
    workspace.reader.costs.record(Step.RERANKER, 2 * LONG_MS)
    answer = workspace.ask(QUESTION)
    assert (answer.hits[0].memory.id, reranker.read) == (ids["tested"], [])
    assert answer.channels[Step.RERANKER].state is ChannelState.LATE


def test_a_reranker_that_is_not_loaded_is_cold(workspace, ids):
    def unavailable():
        raise EncoderUnavailable("not loaded yet")

    workspace.reader = replace(workspace.reader, reranker=unavailable)
    answer = workspace.ask(QUESTION)
    assert (answer.hits[0].memory.id, answer.degraded) == (ids["tested"], True)
    assert answer.channels[Step.RERANKER].state is ChannelState.COLD
