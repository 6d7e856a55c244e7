"""Normalize a text to comparable words: light rewordings disappear, meaning is kept.

English words lose their inflection, and function words are dropped; words of other languages are compared unchanged,
since their endings mark subject and object. The result is not used for search: `pipeline.text.tokens` is more
tolerant than a merge may be.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from pipeline.text.lexicon import load_lexicon
from pipeline.text.similarity import vocabulary as v
from pipeline.text.tokens import MONTHS, WEEKDAYS


class WordClass(IntEnum):
    """The class of a word."""

    PLAIN = 0
    NEGATION = 1
    NUMBER = 2
    DATE = 3
    NAME = 4
    CODE = 5


# The classes of words that are values.
VALUES = (WordClass.NUMBER, WordClass.DATE, WordClass.NAME, WordClass.CODE)


class Tense(IntEnum):
    """The tense that a word's form expresses; a participle takes it from its auxiliary."""

    NONE = 0
    PARTICIPLE = 1
    PAST = 2


class Word(NamedTuple):
    """A word: its comparable form, and function words dropped before it."""

    text: str
    sort: WordClass
    link: str  # the preposition dropped before it, or ""
    stated: bool  # whether a form of "to be" precedes it
    tense: Tense
    ends: bool  # whether it ends a sentence


class NormalizedText(NamedTuple):
    """A text as words in order, and dropped words that still distinguish two texts."""

    words: tuple[Word, ...]
    persons: tuple[str, ...]
    tense: Tense
    asks: bool
    commas: int
    joins: bool
    english: bool


_PIECE = re.compile(
    r"(?:(?<![^\s\"'`(\[])[-~$@#/.+<>=&%!]{1,3})?\w(?:\w|[-./:@#+\\&=?%~$']{1,3}(?=\w)|(?<=\d),(?=\d))*+(?:\+{1,2}|[#%°/])?"
    r"|[=!<>]=|[^\w\s]"
)
_STRONG = frozenset(".;!?。！？；")
_HARMLESS = frozenset(".,;:!?'\"`()[]{}…–—-*«»„“”‘’|_/\\。，、！？；：（）「」¿¡•#&")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_PLAIN_HYPHENS = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")
_NUMBER = re.compile(r"[-+~<>=]*\d[\d.,:%°]*+\+?|\d+(?:st|nd|rd|th)")
_ISO_DATE = re.compile(r"\d{4}-\d\d(?:-\d\d.*)?|\d{1,2}\.\d{1,2}\.(?:\d{4})?|\d{1,2}/\d{1,2}/\d{2,4}|\d{1,2}:\d\d")
_CODE = re.compile(r"[\d_./\\@#+:=$&?~]|\w-\w|^[-!]|[a-z][A-Z]")
_MEASURE = re.compile(r"(\d+(?:[.,]\d+)?)([^\W\d_]{1,4}|%)")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+")
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'"})
_MONTHS = frozenset(name.casefold() for name in MONTHS)
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th|\.)?")
_QUESTION = re.compile(r"[?？][\s\"'`)\]]*\Z")
_CALENDAR = frozenset(name.casefold() for name in (*WEEKDAYS, *MONTHS))
_OPENING = re.compile(r"\s*(?:lesson(?: learned)?|note|fyi|reminder|tip)\s*:\s*", re.IGNORECASE)
_LOST_E = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]|.*(?:[aeiou][cgsvz]|[lrn][cgsv]|[^eom]at|[^o]ut)")
_ED_FORM = re.compile(r"(?!(?:need|speed|seed|feed|embed|indeed|hundred|red|shed)\Z)[a-z]{2,}ed")


def _any_of(name: str) -> str:
    phrases = load_lexicon("similarity").words(name)
    return "|".join(re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True))


_ANNOUNCES = re.compile(
    rf"\A(?:\s*(?:(?:{_any_of('labels')})(?: (?:of|for) (?:this|the|our) \w+)?\s*:|(?:{_any_of('openings')})\b,?))*\s*",
    re.IGNORECASE,
)
_ANNOUNCED = re.compile(
    # Not from within white space: long runs of it would be tried from each of their places.
    rf"(?<!\s)(?:,?\s+(?:{_any_of('endings')}))*\s*(?:[.!]\s*)?\Z",
    re.IGNORECASE,
)


class Piece(NamedTuple):
    """A word or mark as it is written, and in lower case."""

    surface: str
    folded: str


_NOTHING = Piece("", "")


def to_plain_text(text: str) -> str:
    """Return a text in compatible characters, without a label such as "note:"."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_APOSTROPHES)
    opening = _OPENING.match(plain)
    return plain[opening.end() :] if opening else plain


def strip_announcement(text: str) -> str:
    """Return a statement without its announcement: "Decision:", "from now on", "in this project"."""
    return _ANNOUNCED.sub("", _ANNOUNCES.sub("", text, count=1))


def is_question(plain_text: str) -> bool:
    """Return whether a text ends with a question mark."""
    return bool(_QUESTION.search(plain_text[-8:]))


def split_pieces(plain_text: str) -> list[Piece]:
    """Split a text into words and marks; contractions and common phrases become their words."""
    pieces = [piece for surface in _PIECE.findall(plain_text) for piece in _split(surface)]
    heads = [number for number, piece in enumerate(pieces[:-1]) if piece.folded in v.PHRASE_HEADS]
    for number in reversed(heads):
        phrase = (pieces[number].folded, pieces[number + 1].folded)
        if phrase in v.PHRASES:
            pieces[number : number + 2] = [Piece(word, word) for word in v.PHRASES[phrase]]
    return pieces


@lru_cache(maxsize=20_000)
def _split(surface: str) -> tuple[Piece, ...]:
    return tuple(Piece(part, part.casefold()) for part in _parts(surface))


def _parts(surface: str) -> Iterable[str]:
    if measure := _MEASURE.fullmatch(surface):
        unit = v.UNITS.get(measure[2]) or v.UNITS.get(measure[2].casefold())
        return (measure[1], unit) if unit else (surface,)
    if _GROUPED.fullmatch(surface):
        return (surface.replace(",", ""),)
    if _UNSPACED.search(surface):
        return re.findall(rf"{_UNSPACED.pattern}|(?:(?!{_UNSPACED.pattern})\w)+", surface)
    for clitic, words in v.CLITICS.items():
        if surface.casefold().endswith(clitic):
            bare = surface[: -len(clitic)]
            return (*((bare,) if bare else ()), *words)
    return surface.split("-") if _PLAIN_HYPHENS.fullmatch(surface) else (surface,)


class _Reader:
    """The state while reading a text."""

    def __init__(self, coupled: frozenset[str], *, english: bool) -> None:
        self.english = english
        self.coupled = coupled
        self.words: list[Word] = []
        self.persons: list[str] = []
        self.past = self.joins = False
        self.commas = 0
        self.link = ""
        self.stated = self.helped = False

    def drops(self, surface: str, folded: str, *, opens: bool, after: str) -> bool:
        """Process a function word; return whether it was one."""
        # A form of "to have" or "to get" is an auxiliary before some words only.
        is_auxiliary = after in v.WORDS["after_auxiliary"] or _ED_FORM.fullmatch(after)
        if folded in self.coupled or (folded in v.WORDS["auxiliary"] and not is_auxiliary):
            return False
        if surface in v.WORDS["shouted"] or (surface == "A" and not opens):
            return False
        if person := v.PERSONS.get(folded):
            self.persons.append(person)
        elif folded in v.WORDS["being"]:
            self.stated = self.helped = True
            self.past = self.past or folded in v.WORDS["past"]
        elif folded in v.WORDS["helping"]:
            self.helped = folded not in v.WORDS["doing"]
            self.past = self.past or folded in v.WORDS["past"]
        elif folded in v.LINKS:
            self.link = v.LINKS[folded]
        elif folded not in v.WORDS["dropped"] and not (
            folded == "any" and self.words and self.words[-1].sort is WordClass.NEGATION
        ):
            return False
        self.joins = self.joins or folded in ("and", "but", "while")
        return True

    def keeps(self, surface: str, folded: str, *, opens: bool, after: str) -> None:
        """Process a content word."""
        words = self.words
        word, alone, helped = _form(surface, folded, self.english)
        if opens:
            if words:
                words[-1] = words[-1]._replace(ends=True)
            if word.sort is WordClass.NAME and not (self.english and _is_verb(after)):
                word = word._replace(sort=WordClass.PLAIN)
        elif words and words[-1].sort >= WordClass.NUMBER:
            if day := _day_of(words[-1].text, folded):
                words[-1] = words[-1]._replace(text=day, sort=WordClass.DATE)
                return
            if words[-1].sort is WordClass.NUMBER and (unit := v.UNITS.get(surface) or v.UNITS.get(folded)):
                word = word._replace(text=unit, sort=WordClass.NUMBER)
        tense = helped if self.helped else alone
        if self.link or self.stated or tense:
            word = Word(word.text, word.sort, self.link, self.stated, tense, ends=False)
        words.append(word)
        self.link, self.stated, self.helped = "", False, word.sort is WordClass.NEGATION and self.helped


def read_pieces(pieces: Sequence[Piece], coupled: frozenset[str], *, english: bool, asks: bool) -> NormalizedText:
    """Normalize a text; small words in `coupled` belong to another word of the pair and are not dropped."""
    reader = _Reader(coupled, english=english)
    opens, last = True, len(pieces)
    for number, (surface, folded) in enumerate(pieces):
        if surface in _HARMLESS or surface == "=":
            opens = opens or surface in _STRONG
            reader.stated = reader.stated or surface in (":", "=")
            reader.commas += surface == ","
            continue
        after = pieces[number + 1] if number + 1 < last and (opens or folded in v.WORDS["auxiliary"]) else _NOTHING
        if english and folded in v.SMALL and reader.drops(surface, folded, opens=opens, after=after.folded):
            continue
        reader.keeps(surface, folded, opens=opens, after=after.surface)
        opens = False
    tense = max((word.tense for word in reader.words if not word.stated), default=Tense.NONE)
    tense = Tense.PAST if reader.past else tense
    return NormalizedText(tuple(reader.words), tuple(reader.persons), tense, asks, reader.commas, reader.joins, english)


def find_difference(words: Sequence[Word], others: Sequence[Word]) -> tuple[int, int, int]:
    """Return where the words of two texts start to differ, and the ends of the difference in both."""
    start, end, other_end = 0, len(words), len(others)
    while start < min(end, other_end) and words[start].text == others[start].text:
        start += 1
    while min(end, other_end) > start and words[end - 1].text == others[other_end - 1].text:
        end, other_end = end - 1, other_end - 1
    return start, end, other_end


def _day_of(before: str, folded: str) -> str | None:
    """Join a day and its month in either order."""
    month, number = (folded, before) if folded in _MONTHS else (before, folded)
    if month not in _MONTHS:
        return None
    day = _DAY.fullmatch(number)
    return f"{day[1]}_{month}" if day else None


def _is_verb(surface: str) -> bool:
    ends_as_one = len(surface) > 3 and surface.islower() and surface.endswith("s")
    return ends_as_one or surface.casefold() in v.WORDS["verbs_after_a_name"]


@lru_cache(maxsize=20_000)
def _form(surface: str, folded: str, english: bool) -> tuple[Word, Tense, Tense]:
    """Return a word's form, its tense by itself and its tense after an auxiliary."""
    text, sort = _text_and_sort(surface, folded, english=english)
    alone = helped = Tense.NONE
    if english and (_ED_FORM.fullmatch(folded) or v.IRREGULAR.get(folded, folded) != folded):
        helped = Tense.PARTICIPLE
        alone = Tense.PAST if folded in v.WORDS["past_forms"] or folded.endswith("ed") else Tense.NONE
    return Word(text, sort, "", stated=False, tense=Tense.NONE, ends=False), alone, helped


def _text_and_sort(surface: str, folded: str, *, english: bool) -> tuple[str, WordClass]:
    if folded in v.NEGATIONS:
        return v.NEGATIONS[folded], WordClass.NEGATION
    if english and folded in v.NUMBERS:
        return v.NUMBERS[folded], WordClass.NUMBER
    if english and folded.endswith("s") and folded[:-1] in _CALENDAR:
        return folded[:-1], WordClass.DATE
    sort = _sort(surface, folded)
    if sort is WordClass.CODE:
        return surface, sort
    inflected = english and folded.isascii() and sort in (WordClass.PLAIN, WordClass.NAME) and not surface[1:].isupper()
    return (base_form(folded) if inflected else folded), sort


def _sort(surface: str, folded: str) -> WordClass:
    if folded in _CALENDAR or folded in v.WORDS["days"] or _ISO_DATE.fullmatch(surface):
        return WordClass.DATE
    if _NUMBER.fullmatch(surface):
        return WordClass.NUMBER
    if _CODE.search(surface):
        return WordClass.CODE
    return WordClass.NAME if surface[0].isupper() else WordClass.PLAIN


def base_form(word: str) -> str:
    """Remove an English inflection from a word; ambiguous words stay unchanged."""
    word = v.IRREGULAR.get(word, word)
    if len(word) < 4 or word in v.WORDS["uninflected"]:
        return word
    if word.endswith("s"):
        return _singular(word)
    if word.endswith("ied"):
        return f"{word[:-3]}y"
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 1 and re.search(r"[aeiouy]", stem):
            return _complete_stem(stem)
    return word


def _singular(word: str) -> str:
    if word.endswith(("ss", "us", "is", "as")):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y" if len(word) > 4 else word[:-1]
    return word[:-2] if word.endswith(("sses", "xes", "ches", "shes")) else word[:-1]


def _complete_stem(stem: str) -> str:
    """Restore the letters that an ending removed: "cach" → "cache", "stopp" → "stop", "load" is unchanged."""
    if len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in "lszfe":
        return stem[:-1]
    return f"{stem}e" if stem in v.WORDS["stems_with_e"] or _LOST_E.fullmatch(stem) else stem
