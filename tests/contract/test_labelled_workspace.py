"""What the default encoder makes of the labelled workspace: finds what is relevant, keeps quiet otherwise."""

import pytest

from pipeline.index.encoder import OnnxEncoder
from pipeline.recall.relevance import RELEVANT
from tests.fakes.in_process import fast_settings
from tests.fakes.workspace import load_labelled, open_labelled_workspace

# A little below what is reached, as another processor rounds differently: see docs/concepts/recall.md for the figures.
PRECISION = 0.90
RECALL = 0.82


@pytest.fixture(scope="module")
def workspace(compiled_model, tmp_path_factory):
    settings = fast_settings(tmp_path_factory.mktemp("labelled"))
    with open_labelled_workspace(settings, OnnxEncoder.load(compiled_model, threads=1)) as opened:
        yield opened


@pytest.fixture(scope="module")
def messages(workspace):
    """The messages of the test part, each with whether anything was thought relevant."""
    return [
        (m, bool(workspace.ask(m["text"], min_relevance=RELEVANT).hits))
        for m in load_labelled("messages.json")
        if m["part"] == "test"
    ]


def test_relevance_gate_opens_for_messages_about_the_workspace(messages):
    wanted = [opened for message, opened in messages if message["relevant"]]
    assert sum(wanted) / len(wanted) >= RECALL


def test_relevance_gate_stays_closed_for_unrelated_messages(messages):
    opened = [message["relevant"] for message, opened in messages if opened]
    assert sum(opened) / len(opened) >= PRECISION


@pytest.mark.parametrize("text", ["thanks!", "good morning", "ok, go on", "danke dir", "спасибо", "tell me a joke"])
def test_small_talk_is_met_with_silence(workspace, text):
    assert workspace.ask(text, min_relevance=RELEVANT).hits == ()


@pytest.mark.parametrize(
    "text",
    [
        "what is the capital of Mongolia",
        "thanks, that looks great",
        "how tall is Mount Everest",
        "good morning!",
        "who won the world cup in 1998",
        "yes please, go ahead",
    ],
)
def test_recall_returns_nothing_by_default_if_nothing_is_relevant(workspace, text):
    assert workspace.ask(text).hits == ()
    assert len(workspace.ask(text, min_relevance=0.0).hits) == 8


def test_a_relevance_says_how_often_it_is_right(workspace):
    """Bin every message by its best relevance: in each half of the scale the share of relevant ones agrees with it."""
    best = [
        (max((hit.relevance for hit in workspace.ask(m["text"]).hits), default=0.0), m["relevant"])
        for m in load_labelled("messages.json")
        if m["part"] == "test"
    ]
    for low, high in ((0.0, 0.25), (0.75, 1.01)):
        inside = [(score, label) for score, label in best if low <= score < high]
        expected = sum(score for score, _ in inside) / len(inside)
        assert abs(sum(label for _, label in inside) / len(inside) - expected) < 0.15


def test_recall_finds_the_relevant_memory(workspace):
    messages = [m for m in load_labelled("messages.json") if m["relevant"]]
    found = [m["memories"][0] in workspace.find_ids(m["text"], 8) for m in messages]
    assert sum(found) / len(found) >= 0.93
