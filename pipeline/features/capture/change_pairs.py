"""Decide whether a new message of a person replaces or ends an earlier statement, by the words and vectors of both.

A logistic regression over a few features of the pair, fitted on labelled pairs (decision 0080). Questions, proposals,
announcements for later and other people's wishes change nothing.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Final

from pipeline.features.relations.replacements import NEVER, stems
from pipeline.index.encoder import rarity
from pipeline.text.lexicon import load_lexicon
from pipeline.text.sentences import QUESTION_MARKS, expression, says

# A wrong replacement hides something true, so a pair needs more than even odds.
LEAST: Final = 0.55
# What capture did not keep needs no replacement: hiding it matters less than storing it for nothing.
LEAST_UNKEPT: Final = 0.7
# A further statement that a message replaces, next to the first.
LEAST_FURTHER: Final = 0.8
# Shorter clauses are read with the next one: "pnpm here, always (9 at the moment)".
LEAST_CLAUSE_WORDS: Final = 3
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
    "value named before": 2.0,
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
# Between a restated value and the message that gave it.
RESTATED: Final = " (“"
_ARROW = re.compile(r"→|->|=>")
_NUMBER = re.compile(r"(?<![\w.])(\d+(?:[.,:]\d+)*)\s*(%|[a-zµ]+)?", re.IGNORECASE)
_PART = re.compile(r"[,;.!?()]+\s|\s[-–—]\s")
_ELLIPSIS_STEMS, _ELLIPSIS_WORDS = 4, 12
# More about a subject says nothing more about whether it is the same.
_MOST_SHARED, _MOST_NAMED = 2.5, 1.5
# Words that start alike are about the same: "freitags", "Freitagsverbot".
_LEAST_STEM_CHARS, _STEM_CHARS = 4, 6
_INITIALS: Final = (2, 3)
# A surer statement is no surer change.
_MOST_LASTS: Final = 0.7
# From this probability on, a lasting statement may change another without announcing it.
LEAST_LASTS: Final = 0.4
_ANNOUNCING: Final = ("hints", "ended", "reached", "permits", "pointing")
# A change is compared with the same statements again and again.
_KEPT: Final = 4_000
_says = lru_cache(2 * _KEPT)(partial(says, "change"))


@dataclass(frozen=True, slots=True)
class SaidChange:
    """A message that may change earlier statements, and the words that it refers to without repeating them.

    `lasts` is the probability that it is a lasting statement; `answer` is what the agent said to it first. `starts` is
    the later time from which it is true. Then `text` is what the person will say at that time, and `said` the message.
    """

    text: str
    context: str = ""
    lasts: float = 0.5
    answer: str = ""
    starts: str | None = None
    said: str = ""

    @classmethod
    def read(cls, text: str, lasts: float, before: str = "", answer: str = "") -> "SaidChange":
        """Return a message with what was said before it, as far as it needs that, and with the agent's answer."""
        if not needs_context(text):
            return cls(text, lasts=lasts, answer=answer)
        repeats = bool(_numbers(answer).keys() & _numbers(text).keys())
        return cls(text, f"{before} {answer if repeats else ''}".strip(), lasts, answer)

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
        now, before = _numbers(self.meaning), _numbers(older)
        same = now.keys() & before.keys() or (set(now.values()) & set(before.values())) - {""}
        return bool(same) and len(_subject(self.text)) <= _ELLIPSIS_STEMS

    def names_subject(self, older: str) -> bool:
        """Return whether the message itself says what it is about, in words of the earlier statement."""
        return bool(_shared(self.text, older))

    def restate(self, older: str) -> str:
        """Return what is true now: the message, with the value in the answer or the statement that it changes.

        "The port is switched now" has its value in the answer, "make it 8" its subject in the statement.
        """
        if self.starts is not None:
            return self.said if self.names_subject(older) else f"{older.partition(RESTATED)[0]} → {self.said}"
        if self.names_subject(older):
            lacks_value = _numbers(older) and not _numbers(self.text) and _numbers(self.answer)
            return f"{self.text} ({self.answer})" if lacks_value else self.text
        return self.change_value(older) or f"{older.partition(RESTATED)[0]} → {self.text}"

    def change_value(self, older: str) -> str | None:
        """Return an earlier statement with the value of the message; None unless both have one value."""
        older = older.partition(RESTATED)[0]
        known, old = _numbers(older), list(_NUMBER.finditer(older))
        new = [match for match in _NUMBER.finditer(_write_digits(self.text)) if match[1].replace(",", ".") not in known]
        if not len(new) == len(old) == 1:
            return None
        value = old[0][0].replace(old[0][1], new[0][1]) if _is_same_unit(new[0][2], old[0][2]) else new[0][0]
        stated = f"{older[: old[0].start()]}{value}{older[old[0].end() :]}".rstrip(" .!")
        return f"{stated}{RESTATED}{self.text}”)"

    def weigh(self, older: str, closeness: float) -> float:
        """Return the probability that the message replaces or ends an earlier statement of a given closeness."""
        features = self.measure(older, closeness)
        return 1 / (1 + math.exp(-_INTERCEPT - sum(_WEIGHTS[name] * value for name, value in features.items())))

    def measure(self, older: str, closeness: float) -> Mapping[str, float]:
        """Return the features of the message and an earlier statement."""
        says = {name: float(_says(name, self.text)) for name in ("added", "repeated", "state")}
        # "Don't wonder when test data is gone": a condition announces nothing.
        text = expression("change", "condition").sub(" ", self.text)
        ended = (
            _says("ended", text)
            or (_says("reached", text) and _says("aims", older) and not _says("sets_aim", text))
            or (_says("permits", text) and _says("forbids", older) and not _says("added", text))
        )
        changed, hints = _says_changed(text), _says("hints", text)
        is_change = float(changed or ended)
        shared = sum(map(rarity, _shared(self.meaning, older)))
        named = sum(map(rarity, _shared(self.text if self.context else _parts_of_change(self.text), older)))
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
            "value named before": float(bool(_numbers(self.context).items() & _numbers(older).items())),
            "change with an addition": is_change * says["added"],
            "lasts": min(self.lasts, _MOST_LASTS),
            "words": math.log(len(self.text.split())),
            **says,
            **_measure_numbers(self, older, is_change),
        }


def _measure_numbers(change: SaidChange, older: str, is_change: float) -> Mapping[str, float]:
    now, before = _numbers(change.text), _numbers(older)
    new_numbers = now.keys() - before.keys()
    new_units, old_units = {now[number] for number in new_numbers} - {""}, set(before.values()) - {""}
    same_unit = bool(new_units & old_units)
    # The value of another thing contradicts nothing: "photo limit 8, the server is full", "the server has port 80".
    part = ". ".join(part for part in _PART.split(change.text) if _numbers(part).keys() & new_numbers)
    same_thing = same_unit or bool(change.context) or not _subject(part) or bool(_shared(part, older))
    return {
        "another number": bool(new_numbers and before) and same_thing,
        "another number of a change": bool(new_numbers and before and same_thing) * is_change,
        "same unit": same_unit,
        "other unit": bool(new_units and old_units and not same_unit),
        "number only now": bool(new_numbers) and not before,
        "number only before": bool(before) and not new_numbers,
    }


def is_stated(text: str) -> bool:
    """Return whether a message is short and is no question, proposal, plan or wish of another person."""
    return is_settled(text) and not _says("later", text)


def is_settled(text: str) -> bool:
    """Return whether a message is short, and says what is or will be true."""
    return len(text) <= LONGEST and not text.endswith(QUESTION_MARKS) and not _says("open", text)


def may_change(text: str, lasts: float = 0.0, *, later: bool = False) -> bool:
    """Return whether a message may replace or end an earlier statement: it announces a change, or it lasts.

    For `later`, words must announce it.
    """
    if later:
        return is_settled(text) and SaidChange(text).announces
    if not is_stated(text):
        return False
    return lasts >= LEAST_LASTS or _says_changed(text) or any(_says(name, text) for name in _ANNOUNCING)


def split_clauses(text: str) -> list[str]:
    """Return the clauses of a statement."""
    clauses: list[str] = []
    start = 0
    for end in (*(match.start() for match in _clause_end().finditer(text)), len(text)):
        clause = text[start:end].strip(" ,;:.!?()-–—")
        if len(clause.split()) >= LEAST_CLAUSE_WORDS:
            clauses.append(clause)
            start = end
    return clauses


def read_untouched(text: str, clause: str) -> str:
    """Return the part of a statement before a clause, without an exception: it does not depend on the clause."""
    before, *_ = expression("change", "exception").split(text[: text.index(clause)])
    return before.strip(" ,;:-–—(")


def is_carried_out(text: str, answer: str) -> bool:
    """Return whether an agent did at once what a message proposes: "new idea: weekly" – "Changed it to weekly sums"."""
    return _says("carried_out", answer) and bool(_shared(answer, text))


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
    return change.change_value(older) if needs_context(text) and not change.names_subject(older) else None


def _says_changed(text: str) -> bool:
    return (_says("changed", text) or _ARROW.search(text) is not None) and not NEVER.search(text)


def _shared(text: str, older: str) -> frozenset[str]:
    """Return the words of a text that an earlier statement contains, also as the start of a longer word or as initials.

    "lr" are the initials of "learning rate".
    """
    words, starts = _index_words(text)
    known = _subject(older)
    stems_known = {word[:length] for word in known for length in range(_LEAST_STEM_CHARS, _STEM_CHARS)}
    initials = "".join(word[0] for word in re.findall(r"[^\W\d_]{3,}", older.lower()))
    short = [word for word in words if len(word) in _INITIALS and word in initials]
    return (words & (known | stems_known)).union(short, *(starts.get(word[:_STEM_CHARS], ()) for word in known))


@lru_cache
def _index_words(text: str) -> tuple[frozenset[str], Mapping[str, set[str]]]:
    """Return the words of a text's subject, and the same words by each of their starts."""
    starts: dict[str, set[str]] = {}
    for word in _subject(text):
        for length in range(_LEAST_STEM_CHARS, min(len(word), _STEM_CHARS) + 1):
            starts.setdefault(word[:length], set()).add(word)
    return _subject(text), starts


@lru_cache(_KEPT)
def _subject(text: str) -> frozenset[str]:
    return frozenset(word for word in stems(text) if not word.isdigit()) - _weak_stems()


def _parts_of_change(text: str) -> str:
    """Return the parts of a text that announce a change."""
    return ". ".join(part for part in _PART.split(text) if _says_changed(part) or _says("ended", part))


@lru_cache(_KEPT)
def _numbers(text: str) -> Mapping[str, str]:
    """Return the numbers of a text with their units."""
    units = load_lexicon("statements").table("change").table("units").entries
    found = ((number.replace(",", "."), unit.lower()) for number, unit in _NUMBER.findall(_write_digits(text)))
    return {number: units.get(unit, unit) for number, unit in found}


def _write_digits(text: str) -> str:
    """Return a text with digits for the words of numbers."""
    words = load_lexicon("statements").table("change").table("numbers").entries
    return re.sub(r"[^\W\d_]+", lambda word: words.get(word[0].lower(), word[0]), text)


def _is_same_unit(unit: str | None, other: str | None) -> bool:
    """Return whether two words behind numbers may be the same unit; "8 then" has none."""
    units = load_lexicon("statements").table("change").table("units").entries
    first, second = (units.get(word, word) for word in ((unit or "").lower(), (other or "").lower()))
    return first == second or not {first, second} <= set(units.values())


@cache
def _clause_end() -> "re.Pattern[str]":
    return re.compile(f"{_PART.pattern}|{expression('change', 'conjunctions').pattern}", re.IGNORECASE)


@cache
def _weak_stems() -> frozenset[str]:
    return stems(" ".join(load_lexicon("statements").table("change").words("weak")))
