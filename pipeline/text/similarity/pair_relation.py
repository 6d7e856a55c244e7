"""Find the relation of a pair at low cost: most similar texts differ in a way that a few set operations show."""

from typing import Final

from pipeline.text.similarity.comparable_text import WordPlaces, choose_rules, comparable_text
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
    differing = _find_differing_words(first, second)
    if differing is None or not _excludes_conflict(*differing):
        return False
    if cosine >= PAIR_COSINE and not (differing[0].values and differing[1].values):
        return False
    bare = comparable_text(first).bare, comparable_text(second).bare
    if bare == (first, second):
        return True
    differing = _find_differing_words(*bare)
    return differing is not None and _excludes_conflict(*differing)


def _find_differing_words(first: str, second: str) -> tuple[WordPlaces, WordPlaces] | None:
    """Return the distinct words that only one of two texts has, None if a rule could rearrange their words."""
    first_text, second_text = comparable_text(first), comparable_text(second)
    coupled, english = choose_rules(first_text, second_text)
    one, other = (text.find_places(coupled, english=english) for text in (first_text, second_text))
    if one.is_passive or other.is_passive:
        return None
    if not (one.adjacent.isdisjoint(other.texts) and other.adjacent.isdisjoint(one.texts)):
        return None
    return _without(one, other), _without(other, one)


def _without(one: WordPlaces, other: WordPlaces) -> WordPlaces:
    distinct = {text: one.distinct[text] for text in one.distinct.keys() - other.texts}
    return one._replace(distinct=distinct, values=one.values - other.texts)


def _excludes_conflict(one: WordPlaces, other: WordPlaces) -> bool:
    """Return whether the differing words of a text are too far apart for one value in place of another."""
    return _is_wide(one) or _is_wide(other)


def _is_wide(places: WordPlaces) -> bool:
    if not places.distinct:
        return False
    first = min(position for position, _ in places.distinct.values())
    last = max(position for _, position in places.distinct.values())
    # Without a word before it, a value belongs to nothing.
    return last - first >= MAX_VALUE or (first == 0 and last > 0)
