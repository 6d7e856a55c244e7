"""A line of the work tree is found in the committed version of its file."""

import difflib

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.git.line_commit import find_same_line

COMMITTED = "import os\n\ndef open_gate():\n    return 1\n\ndef close_gate():\n    return 1\n"


@pytest.mark.parametrize(
    ("now", "line", "committed"),
    [
        (COMMITTED, 7, 7),
        (f"# A licence\n{COMMITTED}", 8, 7),
        (f"# A licence\n{COMMITTED}", 1, None),
        (COMMITTED.replace("import os\n", ""), 2, 3),
        (COMMITTED.replace("import os", "import sys"), 1, None),
        (COMMITTED.replace("import os", "import sys").replace("return 1", "return 2", 1), 6, 6),
        # An added line may have the text of a committed line.
        (COMMITTED.replace("def close", "def fill_lock():\n    return 1\n\ndef close"), 7, None),
        (COMMITTED.replace("def close", "def fill_lock():\n    return 1\n\ndef close"), 10, 7),
        # Two edits with a moved block between them.
        ("x\n" + COMMITTED.replace("close", "shut") + "y\n", 4, 3),
        ("", 1, None),
    ],
)
def test_a_line_is_found_where_it_was_committed(now, line, committed):
    lines = [text.encode() for text in now.splitlines()] or [b""]
    assert find_same_line(lines, [text.encode() for text in COMMITTED.splitlines()], line) == committed


LINES = st.lists(st.sampled_from([b"a", b"b", b"c", b"}", b""]), max_size=30)


@given(now=LINES.filter(bool), before=LINES, data=st.data())
def test_line_found_in_an_earlier_file_has_the_same_text(now, before, data):
    line = data.draw(st.integers(1, len(now)))
    found = find_same_line(now, before, line)
    assert found is None or before[found - 1] == now[line - 1]
    assert find_same_line(now, now, line) == line


@given(before=st.lists(st.integers(0, 10**6), unique=True, max_size=40), data=st.data())
def test_distinct_lines_are_found_in_their_order(before, data):
    """Lines of which each occurs once match as in any other comparison, unless they were moved."""
    kept = [number for number in before if data.draw(st.booleans())]
    now = [*kept[: len(kept) // 2], -1, *kept[len(kept) // 2 :]]
    texts, texts_before = ([str(number).encode() for number in numbers] for numbers in (now, before))
    blocks = difflib.SequenceMatcher(None, texts, texts_before, autojunk=False).get_matching_blocks()
    expected = {block.a + step + 1: block.b + step + 1 for block in blocks for step in range(block.size)}
    assert {line: find_same_line(texts, texts_before, line) for line in range(1, len(now) + 1)} == {
        line: expected.get(line) for line in range(1, len(now) + 1)
    }
