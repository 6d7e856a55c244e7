"""Sentences of a text; each character is looked at a bounded number of times."""

import pytest

from pipeline.text import sentences
from pipeline.text.sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We met. The port is 8123! So?", ["We met.", "The port is 8123!", "So?"]),
        ("See Dr. Ann, approx. Three. Then go.", ["See Dr. Ann, approx. Three.", "Then go."]),
        ("A. B. C. Done.\n\nNext", ["A. B. C. Done.", "Next"]),
        ("line\nother\n", ["line", "other"]),
        ("", []),
    ],
)
def test_a_text_is_split_into_sentences_and_lines(text, expected):
    assert split_sentences(text) == expected


@pytest.mark.parametrize("unit", ["A. ", "No. ", "It is. ", "a.\n"])
def test_the_work_grows_with_the_length_of_the_text(monkeypatch, unit):
    looked_at = []

    class Counting:
        def search(self, text, start):
            looked_at.append(len(text) - start)
            return abbreviated.search(text, start)

    abbreviated = sentences._ABBREVIATED
    monkeypatch.setattr(sentences, "_ABBREVIATED", Counting())
    split_sentences(unit * 3300)
    assert sum(looked_at) <= 10 * 3300
