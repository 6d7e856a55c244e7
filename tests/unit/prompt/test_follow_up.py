"""The last message of a session: what is kept of it, for how long, and for whom."""

import pytest

from pipeline.kernel.records import Viewer
from pipeline.kernel.records.hooks import AgentSession
from pipeline.prompt.follow_up import FOLLOWS_S, IDLE_S, LastMessages
from pipeline.text.messages import list_names, refers_to_person

FIRST, SECOND = "Which port does staging's Postgres use?", "and on production?"
ONE, OTHER = AgentSession("s1"), AgentSession("s2")


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def last(clock):
    return LastMessages(clock)


def test_follow_up_uses_only_the_words_of_its_session(last):
    last.note(ONE, FIRST, {"a": 0.9})
    found = last.find_continued(ONE, SECOND)
    assert (found.words, found.relevance) == ("port staging postgres", {"a": 0.9})
    assert last.find_continued(OTHER, SECOND) is None
    assert last.find_continued(AgentSession("s1", "subagent"), SECOND) is None


def test_another_message_continues_nothing(last):
    last.note(ONE, FIRST, {})
    assert last.find_continued(ONE, "thanks!") is None
    last.note(ONE, "thanks!", {})
    assert last.find_continued(ONE, SECOND).words == ""


def test_a_chain_of_follow_ups_keeps_the_first_words(last):
    last.note(ONE, FIRST, {})
    last.note(ONE, SECOND, {})
    assert last.find_continued(ONE, "und lokal?").words == "production port staging postgres"


def test_a_late_message_continues_nothing(last, clock):
    last.note(ONE, FIRST, {})
    clock.now = FOLLOWS_S + 1
    assert last.find_continued(ONE, SECOND) is None
    assert last.find(ONE) is not None


def test_agent_without_a_session_is_forgotten_after_an_idle_time(last, clock):
    agent = AgentSession(viewer=Viewer(agent="codex"), cwd="/src/billing")
    last.note(agent, FIRST, {})
    assert last.find(agent) is not None
    assert last.find(AgentSession(viewer=Viewer(agent="codex"), cwd="/src/ledger")) is None
    clock.now = IDLE_S + 1
    assert last.find(agent) is None


@pytest.mark.parametrize(
    ("message", "refers"),
    [
        ("und wer vertritt sie?", True),
        ("who stands in for her?", True),
        ("¿y quién la sustituye a ella?", True),
        ("et lui, il s'occupe de quoi ?", True),
        ("what else does she sign", True),
        ("and on production?", False),
        ("und auf Produktion?", False),
        ("which port?", False),
    ],
)
def test_a_pronoun_refers_to_a_person(message, refers):
    assert refers_to_person(message) is refers


def test_names_are_capitalized_within_a_sentence():
    assert list_names("Bei Nordkai nimmt Frau Petersen die Releases ab") == ["Nordkai", "Frau", "Petersen", "Releases"]
    assert list_names("The demo is run by Élodie Marchand, not by íñigo. Ask her") == ["Élodie", "Marchand"]


def test_the_names_in_the_answer_are_kept(last):
    last.note(ONE, FIRST, {"a": 0.9}, "Petersen")
    assert last.find_continued(ONE, "und wer vertritt sie?").names == "Petersen"


def test_a_repeated_follow_up_continues_the_same_message(last):
    question = "und wer vertritt sie?"
    last.note(ONE, FIRST, {}, "Petersen")
    for _ in range(3):
        continued = last.find_continued(ONE, question)
        assert (continued.words, continued.names) == ("port staging postgres", "Petersen")
        last.note(ONE, question, {})


def test_a_follow_up_without_results_is_still_about_the_same_person(last):
    last.note(ONE, FIRST, {}, "Petersen")
    last.note(ONE, "und wer vertritt sie?", {})
    assert last.find_continued(ONE, "und was unterschreibt sie?").names == "Petersen"


def test_a_repeated_question_continues_nothing(last):
    last.note(ONE, "which port?", {})
    assert last.find_continued(ONE, "which port?") is None
