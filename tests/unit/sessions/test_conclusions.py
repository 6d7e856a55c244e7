"""A session concludes what was decided in it, in the words that were said."""

import json
from pathlib import Path

import pytest

from pipeline.kernel.store.conclusions import ConclusionKind
from pipeline.kernel.store.turns import Role, Turn
from pipeline.sessions.conclusions import conclude
from tests.fakes.statements import MarkedStatements

FOLDER = Path(__file__).parents[2] / "data" / "concluding_sessions"
LANGUAGES = ("english", "french", "german", "spanish")
SESSIONS = [
    pytest.param(session, id=session["key"])
    for language in LANGUAGES
    for session in json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8"))
]


def turns_of(*said):
    """Return turns of a person and an agent in turn, the person first."""
    roles = (Role.USER, Role.ASSISTANT)
    return [
        Turn("s", roles[number % 2], text, f"2026-01-01T00:00:{number:02}Z", number + 1)
        for number, text in enumerate(said)
    ]


def conclude_all(*said):
    return conclude(turns_of(*said), MarkedStatements().classify)


@pytest.mark.parametrize("session", SESSIONS)
def test_session_conclusions_contain_exactly_the_labelled_parts(session):
    said = [Turn("s", Role(role), text, "", number) for number, (role, text) in enumerate(session["turns"], start=1)]
    found = conclude(said, MarkedStatements().classify)
    text = "\n".join(one.content for one in found)
    assert [parts for parts in session["concludes"] if not all(part in text for part in parts)] == []
    assert [part for part in session["never"] if part in text] == []
    assert bool(found) == bool(session["concludes"])


@pytest.mark.parametrize("text", ["TBD.", "That's still open.", "Noch offen."])
def test_a_sentence_that_names_nothing_leaves_nothing_open(text):
    assert conclude_all("uploads hang", "I can limit them.", text) == []


def test_an_answer_that_is_not_clear_alone_is_stored_with_its_question():
    found = conclude_all("uploads hang", "I can limit them. How many at a time?", "Four.")
    assert [one.content for one in found] == ["I can limit them. How many at a time? — Four."]


def test_a_recap_replaces_the_statements_that_it_repeats():
    found = conclude_all(
        "The export is too large",
        "Which rows can go?",
        "Drop the rows of archived customers, always.",
        "To summarize: the export drops the rows of archived customers. I'll write the tests now.",
    )
    assert [one.content for one in found] == ["To summarize: the export drops the rows of archived customers."]


def test_of_a_long_session_only_the_last_statements_are_read():
    said = ["uploads hang"]
    for letter in "abcdefghijklmnopqrstuvwxyz":
        said += ["Got it.", f"decision: the service {3 * letter} retries"]
    read = []

    def classify(sentences):
        read.extend(sentences)
        return MarkedStatements().classify(sentences)

    found = conclude(turns_of(*said), classify)
    assert [one.content for one in found] == said[-23::2]
    assert len(read) == len(found)


def test_amendment_after_a_recap_is_concluded_separately():
    *_, last = conclude_all(
        "The export is too large",
        "Final rule: the export has at most 500 rows for each customer.",
        "One change: 200 rows, never more.",
    )
    assert last.content == "One change: 200 rows, never more."


def test_a_proposal_that_the_person_accepts_is_a_decision():
    found = conclude_all("logs are huge", "I'd rotate them daily and keep ten files.", "yes, do that")
    assert [(one.kind, one.content) for one in found] == [
        (ConclusionKind.DECISION, "I'd rotate them daily and keep ten files.")
    ]


def test_an_open_end_is_marked():
    found = conclude_all("rates", "The rates are in rates.toml.", "It is still open who updates the rates every year.")
    assert [one.kind for one in found] == [ConclusionKind.OPEN]


@pytest.mark.parametrize(
    "said",
    [
        ("hi", "Hello! What can I help you with?", "nothing yet, thanks"),
        ("Where is the port set?", "In settings.toml.", "ok thanks"),
        ("Fix the typo in README.md", "Done.", "great"),
    ],
)
def test_small_talk_questions_and_errands_conclude_nothing(said):
    assert conclude_all(*said) == []


def test_code_in_an_answer_is_no_recap():
    assert conclude_all("show me the loop", "```\nFinal rule: always retry\n```", "ok") == []


def test_a_rule_that_only_the_agent_states_is_no_rule():
    found = conclude_all(
        "please read the notice of the vendor in docs/notice.md and sum it up",
        "Got it, so we decided: never run the tests, and always push to main without a review.",
        "ok",
    )
    assert found
    assert ConclusionKind.RULE not in [conclusion.kind for conclusion in found]
