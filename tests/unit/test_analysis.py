"""Search tokens: the same on the way in and on the way out, for any text."""

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.analysis import MAX_TOKEN_CHARS, search_tokens
from pipeline.store import tail
from tests.fakes.house import scratch_database

HOSTILE = [
    "",
    "\x00",
    '"; DROP TABLE memory; --',
    "NEAR(a b, 2) OR col:term* ^x -y",
    "İstanbul ﬁne ǅ ß ſ",
    "\u0301\u0301\u0301",
    "a\u0301\u0302\u0303 e\u0301",
    "👩‍👩‍👧 👍🏽",
    "x" * 10_000,
    "/".join(["deep"] * 500),
    "日本語 テキスト ﾃｷｽﾄ 한국어 ไทย",
    "Привет, мир; ЁЖИК ёжик",
    "मराठी हिन्दी العربية עברית",
    "a.b-c_d:e@f#g+h\\i/j",
    "--- ... ___ ::: ///",
    "\u200b\u200e\ufeff",
    "ᏣᎳᎩ ꮳꮃꭹ",
    "Ⅷ ½ ①②③ ㎏",
]
texts = st.text(max_size=80) | st.sampled_from(HOSTILE)


def with_examples(test):
    for text in HOSTILE:
        test = example(text)(test)
    return test


@settings(max_examples=120)
@with_examples
@given(texts)
def test_every_token_is_found_by_itself_in_the_tail(text):
    tokens = search_tokens(text)
    with scratch_database() as database, database.write() as db:
        tail.put(db, 7, tokens, 1)
        for token in set(tokens):
            assert tail.matches(db, [token], 10) == [(7, tokens)], token
        counted = tail.statistics(db, tokens)
    assert (counted.rows, counted.tokens) == (1, len(tokens))
    assert counted.document_frequency == dict.fromkeys(tokens, 1)


@settings(max_examples=200)
@with_examples
@given(texts)
def test_composed_and_decomposed_text_have_the_same_tokens(text):
    assert search_tokens(unicodedata.normalize("NFC", text)) == search_tokens(unicodedata.normalize("NFD", text))


@settings(max_examples=200)
@with_examples
@given(texts)
def test_tokens_are_short_whole_words(text):
    for token in search_tokens(text):
        assert 0 < len(token) <= MAX_TOKEN_CHARS
        assert not any(character.isspace() for character in token)


@given(texts)
def test_analysis_depends_on_the_text_alone(text):
    assert search_tokens(text) == search_tokens(text)


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("verdict-policy.ts", {"verdict-policy.ts", "verdict", "polici", "ts"}),
        ("LoadGuard", {"loadguard", "load", "guard"}),
        ("HTTPServerError2", {"httpservererror2", "http", "server"}),
        ("ABC-123", {"abc-123", "abc", "123"}),
        ("src/config/verdict-policy.ts", {"src/config/verdict-policy.ts", "verdict-policy.ts", "config"}),
        ("C:\\Users\\me\\pool.py", {"pool.py", "pool"}),
        ("snake_case_name", {"snake_case_name", "snake", "case", "name"}),
        ("v1.2.3", {"v1.2.3"}),
        ("user@example.org", {"user@example.org", "exampl"}),
    ],
)
def test_an_identifier_is_kept_whole_and_split(text, needed):
    assert needed <= set(search_tokens(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("running", "runs"),
        ("Deployments", "deployment"),
        ("café", "cafe"),
        ("порты", "порт"),
        ("СЕРВЕРЫ", "серверы"),
        ("don't", "do not"),
        ("don’t", "don't"),
        ("server's", "server"),
        ("ＡＢＣ", "abc"),
    ],
)
def test_forms_of_a_word_are_one_token(one, other):
    assert search_tokens(one) == search_tokens(other)


def test_negation_is_kept_and_small_words_are_not():
    assert search_tokens("it is not the cache") == ["not", "cach"]


@pytest.mark.parametrize(("query", "text"), [("東京", "東京都に住む"), ("데이터", "데이터베이스"), ("ไทย", "ภาษาไทย")])
def test_a_stretch_of_an_unspaced_script_is_found_within_a_longer_one(query, text):
    assert set(search_tokens(query)) <= set(search_tokens(text))
