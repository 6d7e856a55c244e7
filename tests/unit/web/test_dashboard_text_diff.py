"""What a text says otherwise than another, word by word."""

import pytest
from hypothesis import given, strategies as st

from web.dashboard.text_diff import (
    CHANGE_CHARS,
    COMPARED_WORDS,
    SHOWN_CHARS,
    Side,
    TextPart,
    diff_texts,
    shorten,
    side_by_side,
)

words = st.text(alphabet="ab c.,-\n日本", max_size=60)


def text_of(parts, *sides):
    return "".join(one.text for one in parts if one.side in sides)


def list_marked(parts):
    return [(one.side, one.text.strip()) for one in parts if one.side is not Side.SAME]


@given(words, words)
def test_both_texts_can_be_read_from_the_differences(older, newer):
    found = diff_texts(older, newer)
    assert text_of(found, Side.SAME, Side.NEWER) == newer
    # White space beside the same word may differ.
    assert text_of(found, Side.SAME, Side.OLDER).split() == older.split() or "".join(
        text_of(found, Side.SAME, Side.OLDER).split()
    ) == "".join(older.split())


@given(words, words)
def test_side_by_side_diff_contains_both_texts_completely(older, newer):
    ours, theirs = side_by_side(older, newer)
    assert (text_of(ours, *Side), text_of(theirs, *Side)) == (older, newer)
    assert Side.NEWER not in {one.side for one in ours}
    assert Side.OLDER not in {one.side for one in theirs}


@given(words)
def test_the_same_text_has_no_differences(text):
    assert list_marked(diff_texts(text, text)) == []


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        ("It runs on port 5433.", "It runs on port 6543.", [(Side.OLDER, "5433"), (Side.NEWER, "6543")]),
        ("Ask Ada first", "Ask Ada", [(Side.OLDER, "first")]),
        ("small server.", "small server, together.", [(Side.NEWER, ", together")]),
        ("東京で会う", "大阪で会う", [(Side.OLDER, "東京"), (Side.NEWER, "大阪")]),
        ("see src/door.py", "see src/gate.py", [(Side.OLDER, "src/door.py"), (Side.NEWER, "src/gate.py")]),
    ],
)
def test_only_changed_words_are_marked(older, newer, expected):
    assert list_marked(diff_texts(older, newer)) == expected


def test_long_texts_are_shortened_where_they_agree():
    same = "the same words again and again " * 60
    ours, theirs = side_by_side(f"{same}one {same}", f"{same}other {same}")
    assert [list_marked(ours), list_marked(theirs)] == [[(Side.OLDER, "one")], [(Side.NEWER, "other")]]
    assert sum(len(one.text) for one in ours) < 600
    assert any(one.cut for one in ours)


@given(st.lists(st.tuples(st.sampled_from(Side), st.text(min_size=1, max_size=3000)), max_size=12))
def test_shortened_diff_has_a_maximum_length(given_parts):
    shown = shorten([TextPart(side, text) for side, text in given_parts])
    assert sum(len(one.text) for one in shown) <= SHOWN_CHARS + CHANGE_CHARS


def test_texts_that_have_nothing_in_common_are_not_compared_for_long():
    older, newer = (" ".join(f"{sign}{n}" for n in range(COMPARED_WORDS + 50)) for sign in "ab")
    assert [one.side for one in diff_texts(older, newer)] == [Side.OLDER, Side.NEWER]


@pytest.mark.parametrize("sign", ["x", "!", "日", "x!"])
def test_a_text_without_a_space_is_one_too(sign):
    text = (sign * 10_000)[:10_000]
    assert list_marked(diff_texts(text, text)) == []
    assert text_of(diff_texts(text, f"{text} more"), Side.SAME, Side.NEWER) == f"{text} more"
