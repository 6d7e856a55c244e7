"""What a text says otherwise than another, word by word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from web.dashboard.differences import (
    CHANGE_CHARS,
    COMPARED_WORDS,
    SHOWN_CHARS,
    Fate,
    Stretch,
    differences,
    shortened,
    side_by_side,
)

words = st.text(alphabet="ab c.,-\n日本", max_size=60)


def text_of(stretches, *fates):
    return "".join(one.text for one in stretches if one.fate in fates)


def marked(stretches):
    return [(one.fate, one.text.strip()) for one in stretches if one.fate is not Fate.SAME]


@given(words, words)
def test_both_texts_can_be_read_from_the_differences(older, newer):
    found = differences(older, newer)
    assert text_of(found, Fate.SAME, Fate.NEW) == newer
    # White space beside the same word may differ.
    assert text_of(found, Fate.SAME, Fate.GONE).split() == older.split() or "".join(
        text_of(found, Fate.SAME, Fate.GONE).split()
    ) == "".join(older.split())


@given(words, words)
def test_side_by_side_each_text_is_whole(older, newer):
    ours, theirs = side_by_side(older, newer)
    assert (text_of(ours, *Fate), text_of(theirs, *Fate)) == (older, newer)
    assert Fate.NEW not in {one.fate for one in ours}
    assert Fate.GONE not in {one.fate for one in theirs}


@given(words)
def test_the_same_text_has_no_differences(text):
    assert marked(differences(text, text)) == []


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        ("It runs on port 5433.", "It runs on port 6543.", [(Fate.GONE, "5433"), (Fate.NEW, "6543")]),
        ("Ask Ada first", "Ask Ada", [(Fate.GONE, "first")]),
        ("small server.", "small server, together.", [(Fate.NEW, ", together")]),
        ("東京で会う", "大阪で会う", [(Fate.GONE, "東京"), (Fate.NEW, "大阪")]),
        ("see src/door.py", "see src/gate.py", [(Fate.GONE, "src/door.py"), (Fate.NEW, "src/gate.py")]),
    ],
)
def test_words_are_marked_and_nothing_beside_them(older, newer, expected):
    assert marked(differences(older, newer)) == expected


def test_long_texts_are_shortened_where_they_agree():
    same = "the same words again and again " * 60
    ours, theirs = side_by_side(f"{same}one {same}", f"{same}other {same}")
    assert [marked(ours), marked(theirs)] == [[(Fate.GONE, "one")], [(Fate.NEW, "other")]]
    assert sum(len(one.text) for one in ours) < 600
    assert any(one.cut for one in ours)


@given(st.lists(st.tuples(st.sampled_from(Fate), st.text(min_size=1, max_size=3000)), max_size=12))
def test_what_is_shown_is_bounded(given_stretches):
    shown = shortened([Stretch(fate, text) for fate, text in given_stretches])
    assert sum(len(one.text) for one in shown) <= SHOWN_CHARS + CHANGE_CHARS


def test_texts_that_have_nothing_in_common_are_not_compared_for_long():
    older, newer = (" ".join(f"{sign}{n}" for n in range(COMPARED_WORDS + 50)) for sign in "ab")
    assert [one.fate for one in differences(older, newer)] == [Fate.GONE, Fate.NEW]


@pytest.mark.parametrize("sign", ["x", "!", "日", "x!"])
def test_a_text_without_a_space_is_one_too(sign):
    text = (sign * 10_000)[:10_000]
    assert marked(differences(text, text)) == []
    assert text_of(differences(text, f"{text} more"), Fate.SAME, Fate.NEW) == f"{text} more"
