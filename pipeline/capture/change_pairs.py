"""Decide whether a new message of a person replaces or ends an earlier statement, by the words and vectors of both.

A logistic regression over a few features of the pair, fitted on labelled pairs (decision 0080). Questions, proposals,
announcements for later and other people's wishes change nothing.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from pipeline.index.encoder import rarity
from pipeline.jobs.mining.replacements import NEVER, stems
from pipeline.text.lexicon import load_lexicon

# A wrong replacement hides something true, so a pair needs more than even odds.
LEAST: Final = 0.55
# A further statement that a message replaces, next to the first.
LEAST_FURTHER: Final = 0.8
# Longer messages describe work; few announce a change.
LONGEST: Final = 400
_INTERCEPT: Final = -5.82
_WEIGHTS: Final[Mapping[str, float]] = {
    "closeness": 4.02,
    "closeness of a change": 4.28,
    "shared words": 1.33,
    "addition": -1.2,
    "words of the change": 0.93,
    "another number": 2.03,
    "same unit": 1.45,
    "both numbers": 2.51,
    "change with an addition": 0.73,
    "shared words of a change": 1.86,
    "other unit": -0.7,
    "number only now": -0.85,
}
_ARROW = re.compile(r"→|->|=>")
_NUMBER = re.compile(r"(?<![\w.])(\d+(?:[.,:]\d+)*)\s*(%|[a-zµ]+)?", re.IGNORECASE)
_PART = re.compile(r"[,;.!?()]+\s|\s[-–—]\s")
_ELLIPSIS_STEMS, _ELLIPSIS_WORDS = 4, 12
# More about a subject says nothing more about whether it is the same.
_MOST_SHARED, _MOST_NAMED = 2.5, 1.5


@dataclass(frozen=True, slots=True)
class SaidChange:
    """A message that may change earlier statements, and the words that it refers to without repeating them."""

    text: str
    context: str = ""

    @property
    def meaning(self) -> str:
        """Return the text to compare by meaning."""
        return f"{self.context} {self.text}".strip()

    def shares_subject(self, older: str) -> bool:
        """Return whether an earlier statement may be about the same thing."""
        return bool(_subject(self.meaning) & _subject(older)) or bool(
            _numbers(self.text).keys() & _numbers(older).keys()
        )

    def names_subject(self, older: str) -> bool:
        """Return whether the message itself says what it is about, in words of the earlier statement."""
        return bool(_subject(self.text) & _subject(older))

    def weigh(self, older: str, closeness: float) -> float:
        """Return the probability that the message replaces or ends an earlier statement of a given closeness."""
        features = self._measure(older, closeness)
        return 1 / (1 + math.exp(-_INTERCEPT - sum(_WEIGHTS[name] * value for name, value in features.items())))

    def _measure(self, older: str, closeness: float) -> Mapping[str, float]:
        patterns = _patterns()
        has_ended = patterns["ended"].search(self.text) is not None or (
            patterns["reached"].search(self.text) is not None and patterns["aims"].search(older) is not None
        )
        is_change = has_ended or (_says_changed(self.text) and not NEVER.search(self.text))
        is_addition = patterns["added"].search(self.text) is not None
        known, subject = _subject(older), _subject(self.meaning)
        shared = _sum_rarity(subject & known)
        named = _sum_rarity((subject if self.context else _words_of_change(self.text)) & known)
        now, before = _numbers(self.text), _numbers(older)
        new_numbers = now.keys() - before.keys()
        new_units = {now[number] for number in new_numbers} - {""}
        old_units = set(before.values()) - {""}
        return {
            "closeness": closeness,
            "closeness of a change": closeness * is_change,
            "shared words": min(shared, _MOST_SHARED) / _MOST_SHARED,
            "addition": is_addition,
            "words of the change": min(named, _MOST_NAMED),
            "another number": bool(new_numbers and before) and is_change,
            "same unit": bool(new_units & old_units),
            "both numbers": bool(new_numbers and before and now.keys() & before.keys()),
            "change with an addition": is_change and is_addition,
            "shared words of a change": min(shared, 1) * is_change,
            "other unit": bool(new_units and old_units and not new_units & old_units),
            "number only now": is_change and bool(new_numbers) and not before,
        }


def may_change(text: str) -> bool:
    """Return whether a message may replace or end an earlier statement now."""
    if len(text) > LONGEST or text.endswith(("?", "？")) or _patterns()["open"].search(text):
        return False
    return _says_changed(text) or _says_ended(text) or _patterns()["pointing"].search(text) is not None


def needs_context(text: str) -> bool:
    """Return whether a message gives a value without saying of what: "make it 8"."""
    return (
        len(_subject(text)) <= _ELLIPSIS_STEMS
        and len(text.split()) <= _ELLIPSIS_WORDS
        and bool(_numbers(text))
        and _patterns()["pointing"].search(text) is not None
    )


def _says_changed(text: str) -> bool:
    return _patterns()["changed"].search(text) is not None or _ARROW.search(text) is not None


def _says_ended(text: str) -> bool:
    return any(_patterns()[name].search(text) for name in ("ended", "reached"))


def _sum_rarity(words: Iterable[str]) -> float:
    return sum(map(rarity, words))


@lru_cache(maxsize=4_000)
def _subject(text: str) -> frozenset[str]:
    return frozenset(word for word in stems(text) if not word.isdigit()) - _weak_stems()


def _words_of_change(text: str) -> frozenset[str]:
    """Return the words of the parts of a text that announce a change."""
    parts = [part for part in _PART.split(text) if _says_changed(part) or _says_ended(part)]
    return frozenset[str]().union(*map(_subject, parts))


@lru_cache(maxsize=4_000)
def _numbers(text: str) -> Mapping[str, str]:
    """Return the numbers of a text with their units."""
    units = load_lexicon("said_changes").table("units").entries
    found = ((number.replace(",", "."), unit.lower()) for number, unit in _NUMBER.findall(text))
    return {number: units.get(unit, unit) for number, unit in found}


@cache
def _weak_stems() -> frozenset[str]:
    return stems(" ".join(load_lexicon("said_changes").words("weak")))


@cache
def _patterns() -> "Mapping[str, re.Pattern[str]]":
    lexicon = load_lexicon("said_changes")
    names = ("changed", "ended", "reached", "aims", "added", "open", "pointing")
    return {name: re.compile(rf"(?<!\w)(?:{lexicon.alternatives(name)})", re.IGNORECASE) for name in names}
