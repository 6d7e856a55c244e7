"""Find the relation of a pair at low cost: most similar texts differ in a way that a few set operations show."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from pipeline.text.similarity.comparable_text import ComparableText, WordPlaces, choose_rules, comparable_text
from pipeline.text.similarity.pair_classifier import (
    DENIAL_COSINE,
    MAX_VALUE,
    PAIR_COSINE,
    REPLACEMENT_COSINE,
    Judgement,
    Relation,
    classify_pair,
)
from pipeline.text.similarity.replacement import gives_another_value

_DIFFERENT: Final = Judgement(Relation.DIFFERENT)


class _OwnWords(NamedTuple):
    """The words that only one text of a pair has: first and last positions, and whether one of them is a value."""

    places: Sequence[tuple[int, int]]
    has_values: bool


def relate_pair(first: str, second: str, cosine: float) -> Judgement:
    """Classify a pair like `classify_pair`, but give no reasons for a difference."""
    if not cosine >= REPLACEMENT_COSINE or (first != second and _is_surely_different(first, second, cosine)):
        return _DIFFERENT
    if first != second and cosine < DENIAL_COSINE and not gives_another_value(first, second):
        return _DIFFERENT
    judgement = classify_pair(first, second, cosine)
    return _DIFFERENT if judgement.relation is Relation.DIFFERENT else judgement


def _is_surely_different(first: str, second: str, cosine: float) -> bool:
    """Return whether the places of distinct words exclude every relation.

    A contradiction needs the same words but one value, and a merge the same values.
    """
    pair = comparable_text(first), comparable_text(second)
    differing = _find_differing_words(*pair)
    if differing is None or not _excludes_conflict(*differing):
        return False
    if cosine >= PAIR_COSINE and not (differing[0].has_values and differing[1].has_values):
        return False
    bare = comparable_text(pair[0].bare), comparable_text(pair[1].bare)
    if bare == pair:
        return True
    differing = _find_differing_words(*bare)
    return differing is not None and _excludes_conflict(*differing)


def _find_differing_words(first: ComparableText, second: ComparableText) -> tuple[_OwnWords, _OwnWords] | None:
    """Return the distinct words that only one of two texts has, None if a rule could rearrange their words."""
    coupled, english = choose_rules(first, second)
    one, other = (text.find_places(coupled, english=english) for text in (first, second))
    if one.is_passive or other.is_passive:
        return None
    if not (other.words.keys().isdisjoint(one.adjacent) and one.words.keys().isdisjoint(other.adjacent)):
        return None
    return _without(one, other), _without(other, one)


def _without(one: WordPlaces, other: WordPlaces) -> _OwnWords:
    words = other.words
    places = [place for text, place in one.words.items() if place is not None and text not in words]
    return _OwnWords(places, any(value not in words for value in one.values))


def _excludes_conflict(one: _OwnWords, other: _OwnWords) -> bool:
    """Return whether the differing words of a text are too far apart for one value in place of another."""
    return _is_wide(one.places) or _is_wide(other.places)


def _is_wide(places: Sequence[tuple[int, int]]) -> bool:
    if not places:
        return False
    first = min(position for position, _ in places)
    last = max(position for _, position in places)
    # Without a word before it, a value belongs to nothing.
    return last - first >= MAX_VALUE or (first == 0 and last > 0)
