"""Questions are made of what sessions decided, where their form is natural."""

import pytest

from pipeline.sessions.questions import Question, Stated, make_questions


def ask(*texts, topic=(), titles=()):
    decided = [Stated(f"s{number}", text, topic) for number, text in enumerate(texts)]
    return [question.text for question in make_questions(decided, [Stated("t", title) for title in titles])]


@pytest.mark.parametrize(
    ("decision", "question"),
    [
        ("We moved staging to port 6543 because PgBouncer is in front of it", "Why did we move staging to port 6543?"),
        ("We use pnpm instead of npm since all packages have one lock file", "Why do we use pnpm instead of npm?"),
        (
            "To summarize: the invoice rounds VAT per line, never on the sum, because the bank does the same.",
            "Why does the invoice round VAT per line?",
        ),
        (
            "So the decision is: sessions are stored in PostgreSQL, no Redis, because it is backed up.",
            "Why are sessions stored in PostgreSQL?",
        ),
        ("We decided to pin numpy so that builds can be repeated", "Why did we decide to pin numpy?"),
    ],
)
def test_a_decision_with_a_reason_becomes_a_question(decision, question):
    assert ask(decision) == [question]


@pytest.mark.parametrize(
    "decision",
    [
        "We dropped it because of the license",
        "We should use pnpm",
        "Use five attempts at most",
        "Wir verwenden pnpm, weil alle Pakete eine gemeinsame Datei haben und das nicht mehr geändert wird",
        "We keep " + "a very long list of services and their ports in one place " * 3 + "because of audits",
    ],
)
def test_other_texts_become_none(decision):
    assert ask(decision) == []


def test_decision_without_a_reason_is_asked_about_by_its_exact_name():
    assert ask("Timeouts of HttpClient are 30 seconds", topic=("timeout", "httpclient")) == [
        "What did we decide about HttpClient?"
    ]
    assert ask("Timeouts are 30 seconds", topic=("timeout",)) == []


def test_a_name_in_many_decisions_is_not_asked_for():
    assert ask(*(f"Rule {number} of web_session" for number in range(3)), topic=("web_session",)) == []


@pytest.mark.parametrize(
    ("title", "questions"),
    [
        ("How should we round the VAT on invoices? The totals differ.", ["How should we round the VAT on invoices?"]),
        ("why is this not working?", []),
        ("Fix the cart test", []),
        ("what now?", []),
    ],
)
def test_a_question_of_the_person_is_used_if_it_is_clear_alone(title, questions):
    assert ask(titles=[title]) == questions


def test_a_question_names_the_session_that_answers_it():
    decided = Stated("s1", "We use pnpm instead of npm because of the lock file")
    assert list(make_questions([decided], [])) == [Question("Why do we use pnpm instead of npm?", "s1")]
