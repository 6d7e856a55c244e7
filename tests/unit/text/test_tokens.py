"""Search tokens: the same on the way in and on the way out, for any text."""

import unicodedata

import pytest
from hypothesis import example, given, strategies as st

from pipeline.text.tokens import (
    ASKS,
    MAX_TOKEN_CHARS,
    identifiers,
    is_field,
    memory_tokens,
    search_tokens,
)
from tests.fakes.properties import examples

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
DAY = "2026-03-04T12:00:00.000Z"
texts = st.text(max_size=80) | st.sampled_from(HOSTILE)


def with_examples(test):
    for text in HOSTILE:
        test = example(text)(test)
    return test


@examples(200)
@with_examples
@given(texts)
def test_composed_and_decomposed_text_have_the_same_tokens(text):
    assert search_tokens(unicodedata.normalize("NFC", text)) == search_tokens(unicodedata.normalize("NFD", text))


@examples(200)
@with_examples
@given(texts)
def test_search_tokens_are_short_words_without_spaces(text):
    for token in search_tokens(text):
        assert 0 < len(token) <= MAX_TOKEN_CHARS
        assert not any(character.isspace() for character in token)
        assert not is_field(token), "no word of a text or a question is taken for a field"


@given(texts)
def test_analysis_depends_on_the_text_alone(text):
    assert search_tokens(text) == search_tokens(text)


@examples(200)
@with_examples
@given(texts)
def test_an_identifier_is_one_of_the_tokens_of_its_text(text):
    assert set(identifiers(text)) <= set(search_tokens(text))


@examples(100)
@with_examples
@given(texts)
def test_a_memory_is_found_by_every_word_of_its_text_and_by_its_day(text):
    terms = memory_tokens(text, DAY)
    words = [term for term in terms if not is_field(term)]
    assert words == search_tokens(text) + search_tokens("Wednesday 4 March 2026")
    # The tail keeps terms between spaces, the segment one a line.
    assert " ".join(terms).split(" ") == "\n".join(terms).split("\n") == terms


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
def test_identifier_is_tokenized_entire_and_in_parts(text, needed):
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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("why does src/db/pool.py fail", ["src/db/pool.py", "pool.py"]),
        ("ABC-123 and abc-123", ["abc-123"]),
        ("the LoadGuard and its user_id", ["loadguard", "user_id"]),
        ("upgrade to v1.2.3 at 10.0.0.17", ["v1.2.3", "10.0.0.17"]),
        ("the sha256sums of 12345", ["sha256sum", "12345"]),
        ("mail ada@example.org", ["ada@example.org"]),
        ("ports of the staging-like database", []),
        ("in 2026 of 80 users, R2 said", []),
        ("HTTP", []),
    ],
)
def test_identifiers_are_recognized_by_their_spelling(text, found):
    assert identifiers(text) == found


def fields(content):
    return [term for term in memory_tokens(content, DAY) if is_field(term)]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("Which port is it?", [ASKS]),
        ("Which port is it?)  ", [ASKS]),
        ("哪个端口？", [ASKS]),
        ("Is it? It is.", []),
        ("Nothing of the sort", []),
        ("10:30 was late", []),
        ("http://x.y: z", []),
        ("Ada: when did you leave, yesterday?", [ASKS]),
    ],
)
def test_a_text_has_the_fields_that_it_shows(content, found):
    assert fields(content) == found
