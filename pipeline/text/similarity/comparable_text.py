"""The normalized forms of a text, computed once for all pairs that the text is in.

The form depends on the pair: both texts are read as English or neither is, and a word of one text can keep a small
word of the other. A text has few forms, so each is kept.
"""

import sys
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from pipeline.text.similarity import vocabulary as v
from pipeline.text.similarity.normalizer import (
    VALUES,
    NormalizedText,
    Tense,
    WordClass,
    find_difference,
    is_question,
    read_pieces,
    split_pieces,
    strip_announcement,
    to_plain_text,
)

# Similar notes come back as neighbors of each other, and the longer a text, the fewer are in memory.
SHORT_CHARS: Final = 300
_COUPLING_WORDS: Final = frozenset(v.COUPLED_WORDS)
_COUPLED_WORDS: Final = frozenset(v.COUPLED_WORDS.values())
_FINAL_MARKS: Final = frozenset(".!")
# Python creates a set for each `frozenset()` that is the result of an operation.
_NO_WORDS: Final[frozenset[str]] = frozenset()
# The same tuple for every text.
_SINGLE_PLACES: Final = tuple((position, position) for position in range(SHORT_CHARS // 2))

_FormKey = tuple[bool, frozenset[str]]


class WordPlaces(NamedTuple):
    """The places of a normalized text's words, in a compact form: thousands of texts are kept.

    `words` maps each word to its first and last position, or to None if a rule treats it like another word. `values`
    are the words that are values and have a position. `adjacent` are two neighboring words written as one.
    """

    words: dict[str, tuple[int, int] | None]
    values: tuple[str, ...]
    adjacent: tuple[str, ...]
    is_passive: bool


class ComparableText:
    """A text with its normalized forms, each computed on first use."""

    def __init__(self, text: str) -> None:
        self._text = text
        plain = to_plain_text(text)
        self._pieces = tuple(split_pieces(plain))
        self._asks = is_question(plain)
        words = frozenset(piece.folded for piece in self._pieces)
        self.english_words = _share(words & v.WORDS["english"])
        self.foreign_words = _share(words & v.WORDS["foreign"])
        self.is_ascii = text.isascii()
        self.coupled = _share(frozenset(v.COUPLED_WORDS[word] for word in words & _COUPLING_WORDS))
        self._small_words = _share(words & _COUPLED_WORDS)
        self._forms: dict[_FormKey, NormalizedText] = {}
        self._places: dict[_FormKey, WordPlaces] = {}

    @cached_property
    def bare(self) -> str:
        """The text without its announcement."""
        bare = strip_announcement(self._text)
        return self._text if bare == self._text else bare

    def _key(self, coupled: frozenset[str], *, english: bool) -> _FormKey:
        return english, (coupled & self._small_words or _NO_WORDS) if english else _NO_WORDS

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


@lru_cache(maxsize=2048)
def _share(words: frozenset[str]) -> frozenset[str]:
    """Return a set that similar texts have in common."""
    return words


def _find_places(form: NormalizedText) -> WordPlaces:
    words = form.words
    places: dict[str, tuple[int, int] | None] = {}
    values: dict[str, None] = {}
    for position, word in enumerate(words):
        text = word.text
        if word.sort is WordClass.NEGATION or text in v.SYNONYMS or text in v.WORDS["beside_negation"]:
            places.setdefault(text, None)
            continue
        known = places.get(text)
        places[text] = _place(position) if known is None else (known[0], position)
        if word.sort in VALUES:
            values[text] = None
    pairs = list(pairwise(words))
    return WordPlaces(
        places,
        tuple(values),
        # Similar texts share most of these words.
        tuple({sys.intern(word.text + after.text): None for word, after in pairs if not word.ends}),
        any(word.stated and word.tense is Tense.PARTICIPLE and after.text == "by" for word, after in pairs),
    )


def _place(position: int) -> tuple[int, int]:
    return _SINGLE_PLACES[position] if position < len(_SINGLE_PLACES) else (position, position)


def comparable_text(text: str) -> ComparableText:
    """Return the comparable form of a text; those of recent texts are kept."""
    # Without its announcement, a text has no final mark either: both have the same normalized forms, and one entry.
    if text[-1:] in _FINAL_MARKS and text[-2:-1].isalnum():
        text = text[:-1]
    return _comparable_short_text(text) if len(text) <= SHORT_CHARS else _comparable_long_text(text)


@lru_cache(maxsize=4_000)
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


# Statements that give different values for one slot: "names start with x_", "… with y_"

MAX_VALUE = 3
# With fewer common words, the subject is unclear.
MIN_FRAME = 3
# Longer statements are about several things.
LONGEST_STATEMENT = 300


def gives_another_value(first: str, second: str) -> bool:
    """Return whether two texts give different values for a thing that has one value at a time."""
    if max(len(first), len(second)) > LONGEST_STATEMENT:
        return False
    first_text, second_text = normalize_pair(*(comparable_text(text).bare for text in sorted((first, second))))
    if (
        first_text.asks
        or second_text.asks
        or first_text.tense != second_text.tense
        or first_text.persons != second_text.persons
    ):
        return False
    words, others = first_text.words, second_text.words
    start, end, other_end = find_difference(words, others)
    value, another, rest = words[start:end], others[start:other_end], words[end:]
    return (
        start > 0
        and len(words) - len(value) >= MIN_FRAME
        and all(
            1 <= len(value_words) <= MAX_VALUE and any(w.sort in VALUES for w in value_words)
            for value_words in (value, another)
        )
        and not any(word.text in v.WORDS["places_of_work"] for word in (*value, *another))
        # The word after the value belongs to it, except for its object: "CamelCase for class names".
        and (not rest or rest[0].link in ("for", "as"))
        and any(word.text in v.WORDS["one_valued"] for word in words[:start])
        and not any(word.text in v.WORDS["conditions"] or word.sort is WordClass.NEGATION for word in (*words, *others))
    )


def gives_value(text: str) -> bool:
    """Return whether a text may give a value for a thing that has one value at a time."""
    words = normalize_pair(comparable_text(text).bare, "")[0].words if len(text) <= LONGEST_STATEMENT else ()
    return any(word.text in v.WORDS["one_valued"] for word in words) and any(word.sort in VALUES for word in words)
