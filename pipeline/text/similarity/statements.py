"""What a text states: whether it announces a change, its values, and the stems of its sentences.

Digestion stores it next to the record of a memory's vectors, so that recall need not read the texts of its hits again.
A stored form is used only for the text and the rules that it was made of.
"""

import json
import zlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

from pipeline.text.sentences import says
from pipeline.text.similarity.choices import StatedValue, find_stated_values, list_sentence_stems
from pipeline.text.text_cache import cache_by_text

# Of the rules of this module, of `choices.py` and of the words that they read; a test notices that it must change.
VERSION: Final = 2
# A longer text also mentions a change among other subjects, unless it begins with it; the longest have several.
SHORT_CHARS, BEGINNING_CHARS, LONGEST_CHARS = 300, 100, 1200
MAX_CACHED_TEXTS = 8192


class Statements:
    """What a text states, read from a stored form if that was made of the same text, else from the text."""

    def __init__(self, content: str, stored: str | None = None) -> None:
        self._content = content
        self._stored = None
        if stored is not None:
            head, *sentences = stored.split("\n")
            mark, *parts = json.loads(head)
            if mark == _mark(content):
                self._stored = parts, sentences

    @cached_property
    def announces_change(self) -> bool:
        """Whether the text is about a change: a short text anywhere, a longer one at its beginning."""
        if self._stored is not None:
            return bool(self._stored[0][0])
        if len(self._content) > LONGEST_CHARS:
            return False
        return says_that_changed(
            self._content if len(self._content) <= SHORT_CHARS else self._content[:BEGINNING_CHARS]
        )

    @cached_property
    def values(self) -> Sequence[StatedValue]:
        """The values that the text states."""
        if self._stored is None:
            return find_stated_values(self._content)
        return [StatedValue(value, frozenset(slot.split(" ")), number) for value, slot, number in self._stored[0][1]]

    @cached_property
    def sentence_stems(self) -> Sequence[Sequence[str]]:
        """The different stems of each sentence of a text that states values."""
        if self._stored is None:
            return list_sentence_stems(self._content)
        return [sentence.split(" ") if sentence else () for sentence in self._stored[1]]


def store_statements(content: str) -> str:
    """Return the stored form of what a text states: JSON, and a line with the stems of each sentence."""
    statements = Statements(content)
    values = [(value, " ".join(sorted(slot)), number) for value, slot, number in statements.values]
    head: list[Any] = [_mark(content), statements.announces_change, values]
    stems = statements.sentence_stems if values else ()
    return "\n".join([json.dumps(head), *map(" ".join, stems)])


def _mark(content: str) -> list[int]:
    return [VERSION, len(content), zlib.crc32(content.encode("utf-8", "surrogatepass"))]


@cache_by_text(MAX_CACHED_TEXTS)
def says_that_changed(text: str) -> bool:
    """Return whether a text says that something is no longer as it was."""
    return says("announced", "changed", text.lower())
