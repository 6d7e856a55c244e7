"""Long texts are cut where they breathe, and nothing but space is lost."""

import re

from hypothesis import given, strategies as st

from pipeline.features.ingest.fields import split_text, split_under_heading
from pipeline.kernel.records import MAX_CONTENT_CHARS
from pipeline.text.redaction import redact

WORD = st.text("abcdefgh.!?\n  中。é", min_size=1, max_size=40)


def _solid(text):
    return re.sub(r"\s", "", text)


def test_a_short_text_is_one_piece():
    assert split_text("  One line.\r\n\r\nAnother. \n") == ["One line.\n\nAnother."]
    assert split_text(" \n\x00\ufeff ") == []


@given(st.lists(WORD, max_size=60).map("".join), st.integers(20, 120))
def test_pieces_hold_everything_in_order(text, limit):
    pieces = split_text(text, limit)
    assert all(0 < len(piece) <= limit for piece in pieces)
    assert all(piece == piece.strip() for piece in pieces)
    assert _solid("".join(pieces)) == _solid(text)


def test_text_is_split_at_paragraphs_lines_sentences_then_words():
    paragraph = "First line of it.\nSecond line; it goes on. And on and on."
    assert split_text(f"{paragraph}\n\n{paragraph}", 80) == [paragraph, paragraph]
    line = "One sentence here. Another one there."
    assert split_text(f"{line}\n{line}", 50) == [line, line]
    assert split_text("One sentence here. Another one there, and longer.", 40) == [
        "One sentence here.",
        "Another one there, and longer.",
    ]
    assert split_text("alpha beta gamma delta", 12) == ["alpha beta", "gamma delta"]
    assert split_text("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]


def test_no_piece_is_a_mere_rest():
    pieces = split_text("word " * 2010, 10_000)
    assert len(pieces) == 2
    assert min(map(len, pieces)) > 4000


def test_a_secret_is_not_cut_in_two():
    key = "ghp_" + "a1B2" * 9
    text = ("filler " * 1425)[: MAX_CONTENT_CHARS - 20] + " " + key + " " + "more " * 500
    pieces = split_text(text)
    assert len(pieces) > 1
    assert key[:12] not in "".join(pieces)
    assert "[REDACTED:" in "".join(pieces)
    assert all(redact(piece).text == piece for piece in pieces)


def test_a_text_that_grows_as_its_secrets_are_cut_out_still_fits():
    pieces = split_text("password=hunter2abc\n" * 499)
    assert len(pieces) == 2
    assert all(len(piece) <= MAX_CONTENT_CHARS for piece in pieces)


def test_every_piece_starts_with_its_heading():
    assert split_under_heading("Notes › Vans", "Doors shut.") == ["Notes › Vans\n\nDoors shut."]
    assert split_under_heading("", "Doors shut.") == ["Doors shut."]
    assert split_under_heading("Notes", " \n") == []
    pieces = split_under_heading("Notes", "Doors shut. " * 2000)
    assert len(pieces) == 3
    assert all(piece.startswith("Notes\n\n") and len(piece) <= MAX_CONTENT_CHARS for piece in pieces)


def test_embedded_files_are_left_out():
    data = "iVBORw0KGgo" * 6000
    assert split_text(f"Before ![pump](data:image/png;base64,{data}) after") == ["Before pump after"]
