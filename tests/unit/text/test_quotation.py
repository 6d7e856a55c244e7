"""Quotations are found by marks alone: word sequences and telling words, whatever their case and layout."""

import json

import pytest
from hypothesis import given, strategies as st

from pipeline.text.quotation import ROW_WORDS, QuotationFinder, QuotationMarks, mark_texts, split_words

TEXT = "Always ask Xylander before zubrowkating the build at night, see run_4711."
WORDS = st.lists(st.sampled_from(["ask", "the", "team", "before", "each", "release"]), min_size=1, max_size=20)


def find(text, *contents, titles=(), used=()):
    marks = mark_texts(contents, titles, "key", lambda word: word in used)
    kept = QuotationMarks.of_json(json.loads(json.dumps(marks.as_json())))
    assert kept == marks
    return QuotationFinder([kept]).quotes(text)


@pytest.mark.parametrize(
    "said",
    [
        TEXT,
        TEXT.upper(),
        "He said:\n  always ask\txylander before Zubrowkating the rest",
        "what about zubrowkating?",
        "fixed in RUN_4711",
        json.dumps({"text": f"first\n{TEXT}"}),
    ],
)
def test_sentence_that_quotes_the_text_is_found(said):
    assert find(said, TEXT)


@pytest.mark.parametrize("said", ["", None, "Ask the team before the build at night.", "always ask the team first"])
def test_sentence_without_a_quotation_is_not_found(said):
    assert not find(said, TEXT)


def test_word_used_by_another_memory_is_no_quotation():
    assert not find("what about zubrowkating?", TEXT, used=("zubrowkating",))


def test_short_text_is_quoted_exactly_and_titles_by_distinctive_words():
    assert find("I use tabs here", "use tabs")
    assert not find("I use spaces", "use tabs")
    assert not find("this is private", TEXT, titles=["private"])
    assert find("the flumadiddle", TEXT, titles=["flumadiddle"])
    assert find("a plan for next year", TEXT, titles=["plan for next"])


def test_scripts_without_spaces_are_read_letter_by_letter():
    assert find("是的,我们使用这个数据库吗", "我们使用这个数据库")
    assert not find("我们不用它", "我们使用这个数据库")


def test_no_word_is_in_the_marks():
    kept = json.dumps(mark_texts([TEXT], ["a title of it"], "key", lambda _word: False).as_json())
    assert not any(word in kept for word in split_words(TEXT) if len(word) > 3)


@given(WORDS, WORDS)
def test_quotation_requires_a_shared_row_of_words(words, said):
    length = min(ROW_WORDS, len(words))
    rows = {tuple(words[start : start + length]) for start in range(len(words) - length + 1)}
    shares = any(tuple(said[start : start + length]) in rows for start in range(len(said) - length + 1))
    assert find(" ".join(said), " ".join(words)) is shares
