"""Classify the relation between two texts.

A cosine cannot distinguish a paraphrase from a memory with another number, so a merge needs more: both texts must
contain every content word, in an order of the same meaning. A wrong merge cannot be recognized from the remaining
text, while a pending pair only costs a look. Therefore the rules prefer pending pairs.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from pipeline.text.similarity import vocabulary as v
from pipeline.text.similarity.comparable_text import comparable_text, gives_another_value, normalize_pair
from pipeline.text.similarity.normalizer import VALUES, NormalizedText, Tense, Word, WordClass, find_difference

Words = Sequence[Word]

# More different words on one side are no rewording, so they are not looked up as synonyms.
MAX_REWORDED = 8
MAX_SWAPPED = 4
MAX_VALUE = 3
# Longer texts are not compared in another word order.
MAX_REORDERED = 100

_REASONS = {
    WordClass.NUMBER: "numbers differ",
    WordClass.DATE: "dates differ",
    WordClass.NAME: "names differ",
    WordClass.CODE: "identifiers differ",
}
MERGE_COSINE: Final = 0.92
PAIR_COSINE: Final = 0.80
# Minimum cosine of a denial: its rules are strict, so a lower cosine is enough.
DENIAL_COSINE: Final = 0.60
# Two values of one thing differ in the value, which is most of a short text's vector.
REPLACEMENT_COSINE: Final = 0.45
ANOTHER_VALUE: Final = "another value"


class TokenDiff(NamedTuple):
    """Two normalized texts after unification of common rewordings, and the words that only one of them has."""

    first: NormalizedText
    second: NormalizedText
    only_first: Words
    only_second: Words


def diff_tokens(first: NormalizedText, second: NormalizedText) -> TokenDiff:
    """Compare two normalized texts: synonyms and separated compounds become one word."""
    only_first, only_second = _only(first.words, second.words), _only(second.words, first.words)
    if (only_first or only_second) and max(len(only_first), len(only_second)) <= MAX_REWORDED:
        first = first._replace(words=_join_words(first.words, {word.text for word in only_second}))
        second = second._replace(words=_join_words(second.words, {word.text for word in only_first}))
        first = first._replace(words=_find_rewordings(first.words, second.words))
        only_first, only_second = _only(first.words, second.words), _only(second.words, first.words)
    return TokenDiff(first, second, only_first, only_second)


def word_texts(words: Words) -> list[str]:
    """Return the comparable forms of words."""
    return [word.text for word in words]


def _only(words: Words, others: Words) -> Words:
    left = Counter(word_texts(others))
    only = []
    for word in words:
        if count := left.get(word.text, 0):
            left[word.text] = count - 1
        else:
            only.append(word)
    return only


def _join_words(words: Words, compounds: set[str]) -> tuple[Word, ...]:
    joined: list[Word] = []
    for word in words:
        if joined and not joined[-1].ends and joined[-1].text + word.text in compounds:
            joined[-1] = joined[-1]._replace(text=joined[-1].text + word.text, ends=word.ends)
        else:
            joined.append(word)
    return tuple(joined)


def _find_rewordings(words: Words, others: Words) -> tuple[Word, ...]:
    free = list(_only(others, words))
    reworded = list(words)
    for word in _only(words, others):
        match = next((other for other in free if v.same_meaning(word.text, other.text)), None)
        if match is not None:
            free.remove(match)
            position = max(i for i, known in enumerate(reworded) if known == word)
            reworded[position] = word._replace(text=match.text, sort=match.sort)
    return tuple(reworded)


def find_hard_differences(c: TokenDiff) -> list[str]:
    """List the differences that forbid a merge at any cosine: a replaced value, a polarity, a role."""
    reasons = [
        reason
        for sort, reason in _REASONS.items()
        if any(w.sort is sort for w in c.only_first) and any(w.sort is sort for w in c.only_second)
    ]
    if any(word.sort is WordClass.NEGATION for word in (*c.only_first, *c.only_second)):
        reasons.append("negation differs")
    others = set(word_texts(c.only_second))
    if others and any(not others.isdisjoint(v.opposites_of(word.text)) for word in c.only_first):
        reasons.append("opposites")
    if all(any(word.text in v.WORDS["places_of_work"] for word in only) for only in (c.only_first, c.only_second)):
        reasons.append("environments differ")
    if not reasons and all(any(word.sort in VALUES for word in only) for only in (c.only_first, c.only_second)):
        reasons.append("values differ")
    persons, other_persons = set(c.first.persons), set(c.second.persons)
    if persons - other_persons and other_persons - persons:
        reasons.append("persons differ")
    # If endings mark the parts of a sentence, word order is free.
    if c.first.english and _find_swapped(c) is not None:
        reasons.append("roles swapped")
    return reasons


def find_soft_differences(c: TokenDiff) -> list[str]:
    """List the differences that need a look: words, order, tense, person, sentences."""
    reasons = []
    if c.only_first and c.only_second:
        reasons.append("words differ")
    elif c.only_first or c.only_second:
        reasons.append("one contains more")
    else:
        pairs = align_words(c.first, c.second)
        if pairs is None:
            reasons.append("order differs")
        elif any(word.link != other.link and not {word.link, other.link} & {"", "of"} for word, other in pairs):
            reasons.append("prepositions differ")
        elif any(abs(word.tense - other.tense) > 1 for word, other in pairs):
            reasons.append("tense differs")
        elif [word.ends for word in c.first.words[:-1]] != [word.ends for word in c.second.words[:-1]]:
            reasons.append("sentences differ")
    if abs(c.first.tense - c.second.tense) > 1 and "tense differs" not in reasons:
        reasons.append("tense differs")
    if _persons(c.first) != _persons(c.second) and c.first.persons != c.second.persons:
        reasons.append("persons differ")
    if c.first.asks != c.second.asks:
        reasons.append("one asks")
    return reasons


def _persons(reading: NormalizedText) -> list[str]:
    return [person for person in reading.persons if person not in v.WORDS["impersonal"]]


def align_words(first: NormalizedText, second: NormalizedText) -> list[tuple[Word, Word]] | None:
    """Pair the words of two texts, if only the position of a phrase or the voice of the verb differs."""
    if word_texts(first.words) == word_texts(second.words):
        return list(zip(first.words, second.words, strict=True))
    for x, y, turned in ((first, second, False), (second, first, True)):
        for order in _reorderings(x, y):
            if word_texts(order) == word_texts(y.words):
                pairs = zip(order, y.words, strict=True)
                return [(other, word) if turned else (word, other) for word, other in pairs]
    return None


def _reorderings(x: NormalizedText, y: NormalizedText) -> Iterator[Words]:
    words = x.words
    if len(words) != len(y.words) or len(words) > MAX_REORDERED:
        return
    # A phrase that moves past a second clause would belong to it.
    if (
        x.commas == 0
        and y.commas < 2
        and not (x.joins or y.joins or any(word.ends for word in (*words[:-1], *y.words[:-1])))
    ):
        yield from _with_a_phrase_moved(words, y.words)
    yield from _with_a_genitive_turned(words, y.words)
    yield from _in_active_voice(words, y)


def _with_a_phrase_moved(words: Words, others: Words) -> Iterator[Words]:
    for k in range(1, len(words)):
        head, lead = words[k], others[0]
        if head.text == lead.text and (head.text in v.WORDS["markers"] or (head.link and head.link == lead.link)):
            yield [*words[k:], *words[:k]]


def _with_a_genitive_turned(words: Words, others: Words) -> Iterator[Words]:
    """Turn "port of the server" into "server port"."""
    start, end, _ = find_difference(words, others)
    for k in range(start + 1, end):
        if words[k].link == "of":
            yield [*words[:start], *words[k:end], *words[start:k], *words[end:]]


def _in_active_voice(words: Words, other: NormalizedText) -> Iterator[Words]:
    """Turn "dates are stored" into the normal form of "we store dates"."""
    if other.persons[:1] != ("we",):
        return
    for k, verb in enumerate(words):
        if k > 0 and verb.tense is Tense.PARTICIPLE and verb.stated:
            yield [verb, *words[:k], *words[k + 1 :]]


def to_active_voice(reading: NormalizedText, other: NormalizedText) -> NormalizedText:
    """Turn "X is owned by Y" into "Y owns X" if the other text uses that form."""
    words = reading.words
    for k in range(1, len(words) - 2):
        verb = words[k]
        said_so = verb.tense is Tense.PARTICIPLE and verb.stated and words[k + 1].text == "by"
        if said_so and "by" not in word_texts(other.words):
            turned = verb._replace(stated=False, tense=Tense.NONE)
            return reading._replace(words=(*words[k + 2 :], turned, *words[:k]))
    return reading


def find_denial(c: TokenDiff) -> str | None:
    """Return how one text contradicts the other, if it does; `ANOTHER_VALUE` if one slot has another value."""
    if abs(c.first.tense - c.second.tense) > 1 or c.first.asks or c.second.asks:
        return None
    if (mid := _find_swapped(c)) is not None:
        start, *_ = find_difference(c.first.words, c.second.words)
        chooses = any(word.text in v.WORDS["preferring"] or word.sort is WordClass.NEGATION for word in mid)
        return "sides swapped" if chooses and c.first.words[start].sort is not WordClass.NUMBER else None
    if sorted(_persons(c.first)) != sorted(_persons(c.second)):
        return None
    if _negates(c):
        return "negation differs"
    start, end, other_end = find_difference(c.first.words, c.second.words)
    if _turns_opposite(c, start, end, other_end):
        return "opposites"
    return _find_other_value(c, start, end, other_end)


def _negates(c: TokenDiff) -> bool:
    only = (*c.only_first, *c.only_second)
    negations = [word for word in only if word.sort is WordClass.NEGATION]
    if not 1 <= len(negations) <= 2 or any(word.text != "not" for word in negations):
        return False
    fillers = v.WORDS["beside_negation"]
    if any(word.sort is not WordClass.NEGATION and word.text not in fillers for word in only):
        return False
    denying = c.first if any(word.sort is WordClass.NEGATION for word in c.only_first) else c.second
    if denying is c.first and any(word.sort is WordClass.NEGATION for word in c.only_second):
        return False
    position = word_texts(denying.words).index("not")
    if any(word.text in v.WORDS["conditions"] for word in denying.words[:position]):
        return False
    readings = [
        text._replace(words=tuple(w for w in text.words if w.sort is not WordClass.NEGATION and w.text not in fillers))
        for text in (c.first, c.second)
    ]
    return len(readings[0].words) > 0 and align_words(*readings) is not None


def _turns_opposite(c: TokenDiff, start: int, end: int, other_end: int) -> bool:
    if end - start != 1 or other_end - start != 1:
        return False
    word, other = c.first.words[start], c.second.words[start]
    if other.text not in v.contradictions_of(word.text):
        return False
    if any(known.text in v.WORDS["conditions"] for known in c.first.words[:start]):
        return False
    claimed = word.stated and other.stated
    return claimed or not (
        {word.text, other.text} & v.WORDS["predicates"] or other.text in v.toggle_negating_prefix(word.text)
    )


def _find_other_value(c: TokenDiff, start: int, end: int, other_end: int) -> str | None:
    value, other = c.first.words[start:end], c.second.words[start:other_end]
    if not (0 < len(value) <= MAX_VALUE and 0 < len(other) <= MAX_VALUE) or start == 0:
        return None
    if Tense.PAST in (c.first.tense, c.second.tense) or any(
        word.text in v.WORDS["places_of_work"] for word in (*value, *other)
    ):
        return None
    subject, rest = c.first.words[:start], c.first.words[end:]
    if any(word.text in v.WORDS["conditions"] for word in subject) or set(word_texts(value)) & set(word_texts(other)):
        return None
    typed = any(w.sort in VALUES for w in value) and any(w.sort in VALUES for w in other)
    singular = any(word.text in v.WORDS["singular"] for word in subject)
    if subject[-1].text == "use":
        return "value differs" if rest and rest[0].link == "for" and typed else None
    if not (typed or singular) or not _has_one_value(subject, value[0].stated and other[0].stated):
        return None
    # A noun or verb implies a single value, and both texts have that form: the later one is valid.
    return ANOTHER_VALUE if typed and (singular or subject[-1].text in v.WORDS["settled"]) else "value differs"


def _has_one_value(subject: Words, stated: bool) -> bool:
    """Return whether the subject's verb, or the noun after it, implies that one value follows."""
    for word in reversed(subject):
        if stated or word.text in v.WORDS["stative"] or (word.stated and word.text in v.WORDS["stative_participles"]):
            return True
        if word.text not in v.WORDS["singular"]:
            return word.text == "use" and subject[-1].text in v.WORDS["singular"]
        stated = word.stated
    return False


def _find_swapped(c: TokenDiff) -> Words | None:
    """Return the words between two things that changed places; between two values there must be none."""
    if c.only_first or c.only_second or len(c.first.words) > MAX_REORDERED:
        return None
    start, end, _ = find_difference(c.first.words, c.second.words)
    x, y = c.first.words[start:end], c.second.words[start:end]
    a, b = word_texts(x), word_texts(y)
    for left in range(1, min(MAX_SWAPPED, len(a) - 1) + 1):
        for right in range(1, min(MAX_SWAPPED, len(a) - left) + 1):
            mid = x[left : len(a) - right]
            if b == [*a[len(a) - right :], *a[left : len(a) - right], *a[:left]] and (
                mid or all(word.sort in VALUES for word in x)
            ):
                return mid if align_words(c.first, c.second) is None else None
    return None


class Relation(StrEnum):
    """The relation between two memories."""

    SAME = "same"
    BORDERLINE = "borderline"
    CONTRADICTS = "contradicts"
    SUPERSEDES = "supersedes"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A relation and its reasons, in fixed phrases that never quote the memories."""

    relation: Relation
    reasons: tuple[str, ...] = ()


def _find_conflict(first: str, second: str, near: TokenDiff | None) -> Judgement | None:
    if near is not None:
        how = find_denial(near)
        bare = comparable_text(first).bare, comparable_text(second).bare
        if how == ANOTHER_VALUE or (bare != (first, second) and find_denial(_compare(*bare)) == ANOTHER_VALUE):
            return Judgement(Relation.SUPERSEDES, (ANOTHER_VALUE,))
        if how is not None:
            return Judgement(Relation.CONTRADICTS, (how,))
    return Judgement(Relation.SUPERSEDES, (ANOTHER_VALUE,)) if gives_another_value(first, second) else None


def _compare(first: str, second: str) -> TokenDiff:
    first_text, second_text = normalize_pair(*sorted((first, second)))
    return diff_tokens(to_active_voice(first_text, second_text), to_active_voice(second_text, first_text))


def classify_pair(first: str, second: str, cosine: float) -> Judgement:
    """Classify the relation between two memories of a scope, in either order; the newer one supersedes."""
    if not cosine >= REPLACEMENT_COSINE:
        return Judgement(Relation.DIFFERENT, ("not similar",))
    if first == second and cosine >= MERGE_COSINE:
        return Judgement(Relation.SAME)
    comparison = _compare(first, second)
    if conflict := _find_conflict(first, second, comparison if cosine >= DENIAL_COSINE else None):
        return conflict
    hard = find_hard_differences(comparison) or (["not similar"] if cosine < PAIR_COSINE else [])
    if hard:
        return Judgement(Relation.DIFFERENT, tuple(hard))
    soft = find_soft_differences(comparison) if comparison.first.words else ["too little to compare"]
    if cosine < MERGE_COSINE:
        soft.insert(0, "not similar enough to merge")
    return Judgement(Relation.BORDERLINE if soft else Relation.SAME, tuple(soft))
