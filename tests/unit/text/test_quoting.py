import re

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.records import HEADER, Source, Trust
from pipeline.text.quoting import ANYBODY, Speaker, find_speaker, flatten, quote

STRANGER = Speaker("import")
FRIEND = Speaker("user", trusted=True)
nasty = st.text() | st.lists(
    st.sampled_from(["“", "”", "„", "‟", "❞", "＂", '"', "\n", "\r\n", "\u2028", "\u0085", "\x1d", "> ", HEADER, "a"])
).map("".join)
values = st.recursive(
    nasty | st.none() | st.booleans() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(nasty, inner, max_size=3),
    max_leaves=6,
)


@given(nasty)
def test_a_quotation_is_one_line_that_nothing_in_it_ends(text):
    quoted = quote(text)
    assert re.fullmatch(r"“[^“”]*”", quoted)
    assert len(quoted.splitlines()) == 1


@given(nasty)
def test_a_quotation_loses_no_word(text):
    assert re.findall(r"[^\W_]+", quote(text)) == re.findall(r"[^\W_]+", text)


@given(values)
def test_untrusted_text_is_a_single_quoted_line_with_its_source(value):
    assert re.fullmatch(r"import noted: “[^“”]*”", STRANGER.say(value))
    assert len(STRANGER.say(value).splitlines()) == 1


@given(values)
def test_trusted_text_is_a_single_line(value):
    assert len(FRIEND.say(value).splitlines()) <= 1


@given(nasty)
def test_each_line_of_untrusted_text_is_quoted_separately(text):
    first, *lines = STRANGER.say_lines(text).splitlines()
    assert first == "import noted:"
    assert len(lines) == len(text.splitlines())
    assert all(re.fullmatch(r"> “[^“”]*”", line) for line in lines)


def test_a_text_keeps_its_lines_and_how_far_they_are_set_in():
    text = "def f():\n    return “1”"
    assert FRIEND.say_lines(text) == text
    assert STRANGER.say_lines(text) == "import noted:\n> “def f():”\n> “    return '1'”"


@pytest.mark.parametrize("source", Source)
@pytest.mark.parametrize("instructs", [False, True])
@pytest.mark.parametrize("trust", [*Trust, None, "", "Trusted"])
def test_only_trusted_text_without_instructions_is_unquoted(source, trust, instructs):
    assert find_speaker(source, trust, instructs=instructs).trusted == (trust == "trusted" and not instructs)
    assert not ANYBODY.trusted


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a: b", "a: b"),
        ({"file": "a.md", "lines": [1, 2]}, "file: a.md, lines: (1, 2)"),
        ({"deep": {"er": [{"x": None}]}, "on": True}, "deep: (er: ((x: null))), on: true"),
        ([], ""),
        (1.5, "1.5"),
    ],
)
def test_value_is_rendered_without_its_punctuation(value, text):
    assert flatten(value) == text


def texts_of(value):
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in texts_of(part)]
    if isinstance(value, list):
        return [text for part in value for text in texts_of(part)]
    return [value] if isinstance(value, str) else []


@given(values)
def test_no_text_of_a_value_is_lost(value):
    assert all(text in flatten(value) for text in texts_of(value))
