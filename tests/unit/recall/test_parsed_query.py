from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from pipeline.recall.query import DAY, parse_query

NOW = datetime(2026, 3, 18, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "What is my favourite editor?",
        "where do I live",
        "I'm allergic to what?",
        "remind me",
        "Wie heißt meine Katze?",
        "¿Cuál es mi puerto?",
        "quel est mon mot de passe",
        "Qual é a minha cidade?",
        "Как зовут мою… мой кот?",
        "我喜欢什么",
        "私の名前は",
    ],
)
def test_a_question_about_the_asker_is_personal(text):
    assert parse_query(text, NOW).personal


@pytest.mark.parametrize(
    "text", ["what does Mira like", "the mime type of migrations", "iOS release", "minimal example", ""]
)
def test_a_question_about_anything_else_is_not(text):
    assert not parse_query(text, NOW).personal


def test_everything_that_a_question_says_is_read_at_once():
    question = parse_query("When did I last touch src/db/pool.py for ABC-123 yesterday?", NOW)
    assert {"src/db/pool.py", "pool.py", "abc-123"} <= set(question.identifiers) <= set(question.tokens)
    assert question.time_range is not None
    assert question.personal


@pytest.mark.parametrize(
    "text",
    [
        *(
            "OPS-2004",
            "src/api/users.py",
            "OPS-2004, OPS-2005?",
            "parseLedgerRow",
            '"connection reset by peer"',
            "`a b`",
        ),
        *(
            "« connexion refusée »",
            "ConnectionResetError: [Errno 104] reset",
            "sqlalchemy.exc.TimeoutError",
            "fatal: no",
        ),
    ],
)
def test_a_query_can_be_nothing_but_a_literal(text):
    assert parse_query(text, NOW).is_literal


@pytest.mark.parametrize(
    "text", ["", "what of OPS-2004", "staging database", 'why "reset by peer" in "staging"', "errors"]
)
def test_a_query_with_other_words_is_no_literal(text):
    assert not parse_query(text, NOW).is_literal


@given(st.text(max_size=60))
def test_any_text_is_a_question_and_its_identifiers_are_among_its_tokens(text):
    question = parse_query(text, NOW)
    assert set(question.identifiers) <= set(question.tokens)


def test_the_same_words_name_another_time_on_another_day():
    ranges = [parse_query("what changed yesterday", NOW + days * DAY).time_range for days in (0, 1, 0)]
    assert ranges[1].since - ranges[0].since == DAY
    assert ranges[2] == ranges[0]
