"""Find quotations of texts that are not stored: only marks of their words and word sequences are.

A text quotes another when it contains six of its words in a row, or all of them if there are fewer. It also quotes it
when it contains a telling word: a long word, or a word with digits, that only the other text uses.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from pipeline.text.normalize import normalize_text

ROW_WORDS = 6
TELLING_CHARS = 8
# Each is searched in all other memories; among more, the longest count.
MAX_TELLING_WORDS = 32
# Shorter tags and titles are too common: of these, only telling words count.
TITLE_WORDS = 3

# Scripts without spaces between words are split into letters.
_UNSPACED = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])\w)+")
# An escaped line feed or tab in JSON would join the words around it.
_ESCAPE = re.compile(r"\\[nrt]")
_MIXED = re.compile(r"(?=.*\d)(?=.*[^\W\d_])|_")


@dataclass(frozen=True, slots=True)
class QuotationMarks:
    """Keyed hashes of the words of some texts, of their word sequences by length, and of their telling words."""

    key: str
    words: frozenset[str]
    rows: frozenset[str]
    lengths: tuple[int, ...]
    telling: frozenset[str]

    def as_json(self) -> dict[str, Any]:
        """Return the marks as a JSON object."""
        return {name: value if isinstance(value, str) else sorted(value) for name, value in asdict(self).items()}

    @classmethod
    def of_json(cls, record: Mapping[str, Any]) -> Self:
        """Parse the marks from a JSON object."""
        words, rows, telling = (frozenset(record[name]) for name in ("words", "rows", "telling"))
        return cls(record["key"], words, rows, tuple(record["lengths"]), telling)


def mark_texts(
    contents: Iterable[str], titles: Iterable[str], key: str, is_used: Callable[[str], bool]
) -> QuotationMarks:
    """Return the marks of texts and of their titles; `is_used` says whether another text uses a word."""
    named = [split_words(title) for title in titles]
    word_lists = [words for content in contents if (words := split_words(content))]
    word_lists += [words for words in named if len(words) >= TITLE_WORDS]
    rows = {row for words in word_lists for row in _list_rows(words, min(ROW_WORDS, len(words)))}
    vocabulary = {word for words in word_lists for word in words}
    spoken = vocabulary.union(*named)
    could_tell = [
        word for word in spoken if len(word) >= TELLING_CHARS or (len(word) > TITLE_WORDS and _MIXED.search(word))
    ]
    candidates = sorted(could_tell, key=lambda word: (-len(word), word))[:MAX_TELLING_WORDS]
    telling = {word for word in candidates if not is_used(word)}
    return QuotationMarks(
        key,
        frozenset(_mark(key, word) for word in vocabulary),
        frozenset(_mark(key, row) for row in rows),
        tuple(sorted({min(ROW_WORDS, len(words)) for words in word_lists})),
        frozenset(_mark(key, word) for word in telling),
    )


def split_words(text: str) -> list[str]:
    """Return the words of a text in order, in lower case."""
    return _WORD.findall(normalize_text(_ESCAPE.sub(" ", text)).casefold())


class QuotationFinder:
    """Find texts that quote the marked texts."""

    def __init__(self, marks: Sequence[QuotationMarks]) -> None:
        self._marks = marks
        # Logs repeat their words, so hashes are cached.
        self._known: list[dict[str, tuple[bool, bool]]] = [{} for _ in marks]

    def quotes(self, text: str | None) -> bool:
        """Return whether a text quotes any of the marked texts."""
        if not text or not self._marks:
            return False
        words = split_words(text)
        return any(self._quotes(marks, known, words) for marks, known in zip(self._marks, self._known, strict=True))

    def _quotes(self, marks: QuotationMarks, known: dict[str, tuple[bool, bool]], words: Sequence[str]) -> bool:
        stretch: list[str] = []
        for word in words:
            if word not in known:
                mark = _mark(marks.key, word)
                known[word] = mark in marks.words, mark in marks.telling
            is_shared, is_telling = known[word]
            if is_telling:
                return True
            if not is_shared:
                stretch.clear()
                continue
            stretch.append(word)
            ends = (" ".join(stretch[-length:]) for length in marks.lengths if len(stretch) >= length)
            if any(_mark(marks.key, row) in marks.rows for row in ends):
                return True
        return False


def _list_rows(words: Sequence[str], length: int) -> Iterator[str]:
    return (" ".join(words[start : start + length]) for start in range(len(words) - length + 1))


def _mark(key: str, text: str) -> str:
    return hashlib.blake2b(text.encode(), key=key.encode()[:64], digest_size=8).hexdigest()
