"""Every query gets finite scores in a stable order, and none gets an optional step after the deadline."""

import math
import string
import time

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.records.recall import Channel, ChannelState, Query, Step
from pipeline.recall.deadline import Deadline
from pipeline.recall.search import search, search_uncached
from tests.fakes.properties import examples
from tests.fakes.recall_workspace import LONG_MS, open_recall_workspace

LONGEST = 4_000
TEXTS = (
    "Ada: Which port does the billing gateway use?",
    "Ben: The billing gateway listens on port 8123",
    "Ada: Now the billing gateway listens on port 9000",
    "Wir benutzen überall Tabulatoren",
    "платежи идут через шлюз",
    "请求的端口是八千",
    "def read_port(path: Path) -> int:\n    return int(path.read_text())",
    "E0308: mismatched types in src/ports.rs",
    "!?",
)
CODE = (
    "def read_port(path: Path) -> int:",
    "src/ports.rs",
    "E0308",
    "if (x) { return y[0]; }",
    "`read_port`",
    "a.b.c()",
    "SELECT * FROM memory;",
    "--port=8123",
    "\n",
)
FOREIGN = "äöüß éçñ платежи шлюз 请求端口 ポート 포트 المنفذ पोर्ट 🦓"

words = st.sampled_from([word for text in TEXTS for word in text.split()])
queries = st.one_of(
    words,
    st.lists(st.sampled_from(CODE), min_size=1, max_size=6).map(" ".join),
    st.text(string.punctuation + string.whitespace, min_size=1, max_size=40),
    st.text(FOREIGN, min_size=1, max_size=60),
    st.text(min_size=1, max_size=60),
    st.lists(words | st.text(FOREIGN, min_size=1, max_size=9), min_size=1).map(
        lambda parts: (" ".join(parts) + " ")[:LONGEST].ljust(LONGEST, parts[0][0])
    ),
    words.map(lambda word: (f"{word} " * LONGEST)[:LONGEST]),
)


@pytest.fixture(scope="module")
def workspace():
    with open_recall_workspace() as workspace:
        for number, text in enumerate(TEXTS):
            workspace.write(text, session_id=f"s{number // 3}")
        workspace.embed()
        yield workspace


@examples(60)
@given(queries)
def test_any_query_gets_finite_scores_in_a_stable_order(workspace, text):
    query = Query(text, 100, budget_ms=LONG_MS, explain=True, min_relevance=0.0)
    answer = search(workspace.reader, query)
    hits = answer.hits
    for hit in hits:
        assert math.isfinite(hit.score)
        assert 0 <= hit.relevance <= 1
        assert all(map(math.isfinite, hit.signals.parts.values()))
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    again = search_uncached(workspace.reader, query).hits
    assert [(hit.memory.id, hit.score, hit.relevance) for hit in again] == [
        (hit.memory.id, hit.score, hit.relevance) for hit in hits
    ]
    shorter = search_uncached(workspace.reader, Query(text, 3, budget_ms=LONG_MS, min_relevance=0.0)).hits
    assert [hit.memory.id for hit in shorter] == [hit.memory.id for hit in hits[:3]]
    assert not answer.degraded
    assert workspace.errors == []


@examples(20)
@given(queries)
def test_no_optional_step_starts_after_the_deadline(workspace, text):
    began = iter([time.perf_counter() - LONG_MS / 1000 - 1])
    expired = Deadline(LONG_MS, lambda: next(began, time.perf_counter()))
    answer = search(workspace.reader, Query(f"{text} ", 5, budget_ms=LONG_MS - 1), expired)
    assert answer.channels[Step.CURRENCY].state is ChannelState.LATE
    states = {answer.channels[channel].state for channel in Channel}
    assert states <= {ChannelState.OK, ChannelState.LATE, ChannelState.OFF}
    assert all(math.isfinite(hit.score) for hit in answer.hits)


def test_an_empty_query_lists_by_importance_and_searches_nothing(workspace):
    answer = search(workspace.reader, Query("", 5))
    assert len(answer.hits) == 5
    assert {report.state for report in answer.channels.values()} == {ChannelState.OFF}
    assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)
