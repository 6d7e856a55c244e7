"""The normalized forms of a text, computed once for all pairs that the text is in.

The form depends on the pair: both texts are read as English or neither is, and a word of one text can keep a small
word of the other. A text has few forms, so each is kept.
"""

from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from pipeline.text.similarity import vocabulary as v
from pipeline.text.similarity.announcements import strip_announcement
from pipeline.text.similarity.normalizer import (
    VALUES,
    NormalizedText,
    Tense,
    WordClass,
    is_question,
    read_pieces,
    split_pieces,
    to_plain_text,
)

# Similar notes come back as neighbors of each other, and the longer a text, the fewer are in memory.
SHORT_CHARS: Final = 300
_COUPLING_WORDS: Final = frozenset(v.COUPLED_WORDS)
_COUPLED_WORDS: Final = frozenset(v.COUPLED_WORDS.values())

_FormKey = tuple[bool, frozenset[str]]


class WordPlaces(NamedTuple):
    """The places of a normalized text's words.

    `texts` are the words, `distinct` the first and last position of each word that no rule treats like another word,
    `values` those of them that are values. `adjacent` are two neighboring words written as one.
    """

    texts: frozenset[str]
    distinct: dict[str, tuple[int, int]]
    values: frozenset[str]
    adjacent: frozenset[str]
    is_passive: bool


class ComparableText:
    """A text with its normalized forms, each computed on first use."""

    def __init__(self, text: str) -> None:
        self._text = text
        plain = to_plain_text(text)
        self._pieces = tuple(split_pieces(plain))
        self._asks = is_question(plain)
        words = {piece.folded for piece in self._pieces}
        self.english_words = frozenset(words & v.ENGLISH)
        self.foreign_words = frozenset(words & v.FOREIGN)
        self.is_ascii = text.isascii()
        self.coupled = frozenset(v.COUPLED_WORDS[word] for word in words & _COUPLING_WORDS)
        self._small_words = frozenset(words & _COUPLED_WORDS)
        self._forms: dict[_FormKey, NormalizedText] = {}
        self._places: dict[_FormKey, WordPlaces] = {}

    @cached_property
    def bare(self) -> str:
        """The text without its announcement."""
        bare = strip_announcement(self._text)
        return self._text if bare == self._text else bare

    def _key(self, coupled: frozenset[str], *, english: bool) -> _FormKey:
        return english, coupled & self._small_words if english else frozenset()

    def normalize(self, coupled: frozenset[str], *, english: bool) -> NormalizedText:
        """Return the normalized form for a pair with these coupled words."""
        key = self._key(coupled, english=english)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = read_pieces(self._pieces, key[1], english=english, asks=self._asks)
        return form

    def find_places(self, coupled: frozenset[str], *, english: bool) -> WordPlaces:
        """Return the places of the words of a normalized form."""
        key = self._key(coupled, english=english)
        places = self._places.get(key)
        if places is None:
            places = self._places[key] = _find_places(self.normalize(coupled, english=english))
        return places


def _find_places(form: NormalizedText) -> WordPlaces:
    words = form.words
    distinct: dict[str, tuple[int, int]] = {}
    values = set()
    for position, word in enumerate(words):
        text = word.text
        if word.sort is WordClass.NEGATION or text in v.SYNONYMS or text in v.BESIDE_NEGATION:
            continue
        distinct[text] = (distinct[text][0] if text in distinct else position, position)
        if word.sort in VALUES:
            values.add(text)
    pairs = list(pairwise(words))
    return WordPlaces(
        frozenset(word.text for word in words),
        distinct,
        frozenset(values),
        frozenset(word.text + after.text for word, after in pairs if not word.ends),
        any(word.stated and word.tense is Tense.PARTICIPLE and after.text == "by" for word, after in pairs),
    )


def comparable_text(text: str) -> ComparableText:
    """Return the comparable form of a text; those of recent texts are kept."""
    return _comparable_short_text(text) if len(text) <= SHORT_CHARS else _comparable_long_text(text)


@lru_cache(maxsize=8_000)
def _comparable_short_text(text: str) -> ComparableText:
    return ComparableText(text)


@lru_cache(maxsize=256)
def _comparable_long_text(text: str) -> ComparableText:
    return ComparableText(text)


def choose_rules(first: ComparableText, second: ComparableText) -> tuple[frozenset[str], bool]:
    """Return the coupled words of a pair, and whether it has more English function words than others."""
    ours = len(first.english_words | second.english_words)
    theirs = len(first.foreign_words | second.foreign_words)
    english = ours > theirs or (ours == theirs == 0 and first.is_ascii and second.is_ascii)
    return first.coupled | second.coupled, english


def normalize_pair(first: str, second: str) -> tuple[NormalizedText, NormalizedText]:
    """Normalize two texts by the same rules: as English if they have more English function words than others."""
    first_text, second_text = comparable_text(first), comparable_text(second)
    coupled, english = choose_rules(first_text, second_text)
    return first_text.normalize(coupled, english=english), second_text.normalize(coupled, english=english)
