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
_INTERCEPT: Final = -2.31
_WEIGHTS: Final[Mapping[str, float]] = {
    "closeness": 1.82,
    "closeness of a change": 2.36,
    "closeness with a hint": 0.92,
    "change": 2.1,
    "ended": -0.39,
    "hint": 1.31,
    "shared words": 1.9,
    "words of the change": 0.76,
    "shared words of a change": 0.82,
    "change with an addition": 0.4,
    "lasts": 1.22,
    "words": -1.09,
    "added": -1.81,
    "repeated": -1.66,
    "state": -1.22,
    "another number": 1.13,
    "another number of a change": 0.94,
    "same unit": 1.6,
    "other unit": -0.17,
    "number only now": -0.69,
    "number only before": -0.41,
}
_ARROW = re.compile(r"→|->|=>")
_NUMBER = re.compile(r"(?<![\w.])(\d+(?:[.,:]\d+)*)\s*(%|[a-zµ]+)?", re.IGNORECASE)
_PART = re.compile(r"[,;.!?()]+\s|\s[-–—]\s")
_ELLIPSIS_STEMS, _ELLIPSIS_WORDS = 4, 12
# More about a subject says nothing more about whether it is the same.
_MOST_SHARED, _MOST_NAMED = 2.5, 1.5
# Words that start alike are about the same: "freitags", "Freitagsverbot".
_LEAST_STEM_CHARS, _STEM_CHARS = 4, 6
# A surer statement is no surer change.
_MOST_LASTS: Final = 0.7
# From this probability on, a lasting statement may change another without announcing it.
LEAST_LASTS: Final = 0.4
_ANNOUNCING: Final = ("hints", "ended", "reached", "permits", "pointing")


@dataclass(frozen=True, slots=True)
class SaidChange:
    """A message that may change earlier statements, and the words that it refers to without repeating them.

    `lasts` is the probability that it is a lasting statement.
    """

    text: str
    context: str = ""
    lasts: float = 0.5

    @property
    def meaning(self) -> str:
        """Return the text to compare by meaning."""
        return f"{self.context} {self.text}".strip()

    @property
    def announces(self) -> bool:
        """Return whether the words say that something changed or ended."""
        return _says_changed(self.text) or _says("ended", self.text) or _says("reached", self.text)

    def shares_subject(self, older: str) -> bool:
        """Return whether an earlier statement may be about the same thing."""
        if _shared(self.meaning, older):
            return True
        # "customers complained. 25 MB" names no other subject.
        now, before = _numbers(self.text), _numbers(older)
        same = now.keys() & before.keys() or (set(now.values()) & set(before.values())) - {""}
        return bool(same) and len(_subject(self.text)) <= _ELLIPSIS_STEMS

    def names_subject(self, older: str) -> bool:
        """Return whether the message itself says what it is about, in words of the earlier statement."""
        return bool(_shared(self.text, older))

    def restate(self, older: str) -> str:
        """Return what is true now: the message, after the statement that it changes if it names no subject itself."""
        if self.names_subject(older):
            return self.text
        new, old = _numbers(self.text).keys() - _numbers(older).keys(), _NUMBER.findall(older)
        if len(new) == len(old) == 1:
            (number,) = new
            stated = _NUMBER.sub(lambda match: match[0].replace(match[1], number), older).rstrip(" .!")
            return f"{stated} (“{self.text}”)"
        return f"{older} → {self.text}"

    def weigh(self, older: str, closeness: float) -> float:
        """Return the probability that the message replaces or ends an earlier statement of a given closeness."""
        features = self.measure(older, closeness)
        return 1 / (1 + math.exp(-_INTERCEPT - sum(_WEIGHTS[name] * value for name, value in features.items())))

    def measure(self, older: str, closeness: float) -> Mapping[str, float]:
        """Return the features of the message and an earlier statement."""
        says = {name: float(_says(name, self.text)) for name in ("added", "repeated", "state")}
        ended = (
            _says("ended", self.text)
            or (_says("reached", self.text) and _says("aims", older))
            or (_says("permits", self.text) and _says("forbids", older) and not _says("added", self.text))
        )
        changed, hints = _says_changed(self.text), _says("hints", self.text)
        is_change = float(changed or ended)
        shared = _sum_rarity(_shared(self.meaning, older))
        named = _sum_rarity(_shared(self.text if self.context else _parts_of_change(self.text), older))
        return {
            "closeness": closeness,
            "closeness of a change": closeness * is_change,
            "closeness with a hint": closeness * (hints and not is_change),
            "change": is_change,
            "ended": float(ended),
            "hint": float(hints),
            "shared words": min(shared, _MOST_SHARED) / _MOST_SHARED,
            "words of the change": min(named, _MOST_NAMED),
            "shared words of a change": min(shared, 1) * is_change,
            "change with an addition": is_change * says["added"],
            "lasts": min(self.lasts, _MOST_LASTS),
            "words": math.log(len(self.text.split())),
            **says,
            **_measure_numbers(self.text, older, is_change),
        }


def _measure_numbers(text: str, older: str, is_change: float) -> Mapping[str, float]:
    now, before = _numbers(text), _numbers(older)
    new_numbers = now.keys() - before.keys()
    new_units, old_units = {now[number] for number in new_numbers} - {""}, set(before.values()) - {""}
    same_unit = bool(new_units & old_units)
    return {
        "another number": bool(new_numbers and before),
        "another number of a change": bool(new_numbers and before) * is_change,
        "same unit": same_unit,
        "other unit": bool(new_units and old_units and not same_unit),
        "number only now": bool(new_numbers) and not before,
        "number only before": bool(before) and not new_numbers,
    }


def is_stated(text: str) -> bool:
    """Return whether a message is short and is no question, proposal, plan or wish of another person."""
    return len(text) <= LONGEST and not text.endswith(("?", "？")) and not _says("open", text)


def may_change(text: str, lasts: float = 0.0) -> bool:
    """Return whether a message may replace or end an earlier statement now: it announces a change, or it lasts."""
    if not is_stated(text):
        return False
    return lasts >= LEAST_LASTS or _says_changed(text) or any(_says(name, text) for name in _ANNOUNCING)


def needs_context(text: str) -> bool:
    """Return whether a message gives a value without saying of what: "make it 8"."""
    return (
        len(_subject(text)) <= _ELLIPSIS_STEMS
        and len(text.split()) <= _ELLIPSIS_WORDS
        and bool(_numbers(text))
        and _says("pointing", text)
    )


def settle_value(text: str, older: str) -> str | None:
    """Return an earlier sentence with the value that a text gives instead of its own; None if the text gives none."""
    change = SaidChange(text)
    if not needs_context(text) or change.names_subject(older) or len(_numbers(older)) != 1:
        return None
    return change.restate(older) if len(_numbers(text).keys() - _numbers(older).keys()) == 1 else None


def _says_changed(text: str) -> bool:
    return (_says("changed", text) or _ARROW.search(text) is not None) and not NEVER.search(text)


def _says(name: str, text: str) -> bool:
    return _patterns()[name].search(text) is not None


def _sum_rarity(words: Iterable[str]) -> float:
    return sum(map(rarity, words))


def _shared(text: str, older: str) -> frozenset[str]:
    """Return the words of a text that an earlier statement contains, also as the start of a longer word."""
    known = _subject(older)
    return frozenset(word for word in _subject(text) if word in known or any(_is_start(word, other) for other in known))


def _is_start(word: str, other: str) -> bool:
    length = min(len(word), len(other), _STEM_CHARS)
    return length >= _LEAST_STEM_CHARS and word[:length] == other[:length]


@lru_cache(maxsize=4_000)
def _subject(text: str) -> frozenset[str]:
    return frozenset(word for word in stems(text) if not word.isdigit()) - _weak_stems()


def _parts_of_change(text: str) -> str:
    """Return the parts of a text that announce a change."""
    return ". ".join(part for part in _PART.split(text) if _says_changed(part) or _says("ended", part))


@lru_cache(maxsize=4_000)
def _numbers(text: str) -> Mapping[str, str]:
    """Return the numbers of a text with their units."""
    lexicon = load_lexicon("said_changes")
    units, words = lexicon.table("units").entries, lexicon.table("numbers").entries
    digits = re.sub(r"[^\W\d_]+", lambda word: words.get(word[0].lower(), word[0]), text)
    found = ((number.replace(",", "."), unit.lower()) for number, unit in _NUMBER.findall(digits))
    return {number: units.get(unit, unit) for number, unit in found}


@cache
def _weak_stems() -> frozenset[str]:
    return stems(" ".join(load_lexicon("said_changes").words("weak")))


@cache
def _patterns() -> "Mapping[str, re.Pattern[str]]":
    lexicon = load_lexicon("said_changes")
    names = (*_ANNOUNCING, "changed", "aims", "forbids", "added", "repeated", "state", "open")
    return {name: re.compile(rf"(?<!\w)(?:{lexicon.alternatives(name)})", re.IGNORECASE) for name in names}
