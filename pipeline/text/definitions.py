"""Find the definitions in a text: two names of one thing, such as "the aquarium, i.e. the staging cluster".

The phrases of definitions are a closed list in four languages (`lexicon/aliases.toml`). Short forms in brackets are
matched with the words before them as Schwartz and Hearst do (A Simple Algorithm for Identifying Abbreviation
Definitions in Biomedical Text, 2003). A phrase shows where one end of a name is, not the other: "gangway aka the edge
proxy terminates" may define "edge" or "edge proxy terminates". `choose_name` decides it by the other texts.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.text.languages import may_be_foreign
from pipeline.text.lexicon import load_lexicon, word_sets

MAX_NAME_WORDS: Final = 4
MAX_SHORT_FORM_CHARS: Final = 10
# Longer texts are documents; their start introduces the names.
READ_CHARS: Final = 4000

_LEXICON: Final = load_lexicon("aliases")
_WORDS: Final = word_sets("aliases")
_QUOTES: Final = "\"“”„«»'’‘`*_"
_WORD: Final = re.compile(r"[^\W_](?:[\w.+#/&@-]*[\w+#])?")
# The end of a clause; a period inside a word is none.
_BREAK: Final = re.compile(r"[,;:()\[\]{}!?\n—–|<>=]|\.(?=\s|$)|\s-\s")
_MARKER: Final = re.compile(
    rf"(?:(?<=\w)|(?<=[{_QUOTES}]))(?:\s*[,(–—-]\s*(?:{_LEXICON.alternatives('between')}|"
    rf"{_LEXICON.alternatives('after_comma')})|\s+(?:{_LEXICON.alternatives('between')}))[,:]?\s+",
    re.IGNORECASE,
)
_AFTER_BOTH: Final = re.compile(rf"(?<!\s)\s+(?:{_LEXICON.alternatives('after_both')})\b", re.IGNORECASE)
_BEFORE_SECOND: Final = re.compile(rf"\s*(?:(?:{_LEXICON.alternatives('before_second')})\s+)?", re.IGNORECASE)
_NAMES_VERB: Final = re.compile(rf"\b(?:{_LEXICON.alternatives('naming_verbs')})\s+", re.IGNORECASE)
_NAMES_QUOTED: Final = re.compile(
    rf"[\"“„«]([^\"“”„«»]{{2,60}})[\"”“»]\s+(?:{_LEXICON.alternatives('names_of')})\s+", re.IGNORECASE
)
_BRACKETS: Final = re.compile(r"\s\(([^()\n]{2,60})\)")
_CODE_NAME: Final = re.compile(r"[a-z][a-z\d]*(?:[-_][a-z\d]+)+")
_REFERENCE: Final = re.compile(r"[A-Z][A-Z0-9]*-\d+|v?\d[\d.]*")


@dataclass(frozen=True, slots=True)
class NameSpan:
    """Words that contain a name: it ends at the fixed end, and the other end is known if it is `closed`.

    `is_first` means that the fixed end is the first word.
    """

    words: tuple[str, ...]
    closed: bool = True
    is_first: bool = True


@dataclass(frozen=True, slots=True)
class Definition:
    """The spans of two names of one thing."""

    first: NameSpan
    second: NameSpan


def find_definitions(text: str) -> list[Definition]:
    """Find the definitions in a text."""
    text = text[:READ_CHARS]
    found = [_define(text, match.start(), _span_after(text, match.end())) for match in _MARKER.finditer(text)]
    found += [Definition(_whole(match[1]), _span_after(text, match.end())) for match in _NAMES_QUOTED.finditer(text)]
    found += _find_after_both(text)
    # "Nightjar: … . Marketing calls it the day-end run" names what the text starts with.
    found += [
        Definition(_span_after(text, 0), _span_after(text, match.end()))
        for match in _NAMES_VERB.finditer(text)
        if match.start() > 0
    ]
    found += _find_in_brackets(text)
    return [definition for definition in found if definition.first.words and definition.second.words]


def choose_name(span: NameSpan, is_used: Callable[[Sequence[str]], bool]) -> tuple[str, ...] | None:
    """Return the name in a span; `is_used` returns whether another text contains some words in this order."""
    code_names = [word for word in span.words if any(map(str.isdigit, word)) and _CODE_NAME.fullmatch(word)]
    if code_names:
        return (code_names[0 if span.is_first else -1],)
    if span.closed:
        return span.words
    for count in range(min(len(span.words), MAX_NAME_WORDS), 0, -1):
        name = span.words[:count] if span.is_first else span.words[-count:]
        if is_used(name):
            return name
    return None


def list_short_forms() -> Mapping[str, Sequence[str]]:
    """Return the long forms of each short form that developers use everywhere."""
    return _LEXICON.entries["short_forms"]  # type: ignore[no-any-return]


def is_file_extension(name: str) -> bool:
    """Return whether a short form is a part of file names as well."""
    return name.casefold() in _WORDS["file_extensions"]


def _find_after_both(text: str) -> Iterator[Definition]:
    """Find "Passenger Name Record, PNR for short"."""
    for match in _AFTER_BOTH.finditer(text):
        comma = text.rfind(",", 0, match.start())
        if comma > 0 and match.start() - comma < MAX_SHORT_FORM_CHARS * MAX_NAME_WORDS:
            second = text[_BEFORE_SECOND.match(text, comma + 1).end() : match.start()]  # type: ignore[union-attr]
            yield _define(text, comma, _whole(second))


def _define(text: str, end: int, second: NameSpan) -> Definition:
    """Return the definition by the words before a position; a short form shows where they start."""
    if len(second.words) == 1 and (long := match_short_form(second.words[0], _words(_last_clause(text[:end])))):
        return Definition(NameSpan(long), second)
    return Definition(_span_before(text, end), second)


def _find_in_brackets(text: str) -> Iterator[Definition]:
    foreign = may_be_foreign(text)
    for match in _BRACKETS.finditer(text):
        inside, before = match[1].strip(_QUOTES + " "), _words(_last_clause(text[: match.start()]))
        if not inside or not before or _REFERENCE.fullmatch(inside):
            continue
        within = _words(inside)
        if long := match_short_form(inside, before):
            yield Definition(NameSpan(long), NameSpan((inside,)))
        elif 1 < len(within) <= 2 * len(before[-1]) and match_short_form(before[-1], within) == within:
            yield Definition(NameSpan((before[-1],)), NameSpan(within))
        elif _CODE_NAME.fullmatch(inside) or (foreign and _is_plain_name(inside, within)):
            span = _span_before(text, match.start())
            # Without an article before it, the words before the bracket are rarely a name.
            if span.closed and _starts_clause_or_follows_article(before, span):
                yield Definition(span, NameSpan(within))


def match_short_form(short: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return the last words whose letters contain those of a short form in order, empty if they do not.

    The first letter of the short form starts a word.
    """
    if not 2 <= len(short) <= MAX_SHORT_FORM_CHARS or not short[0].isalnum() or " " in short or short.islower():
        return ()
    letters = [letter for letter in short.casefold().removesuffix("s") if letter.isalnum()]
    nearest = words[-min(len(letters) + 5, 2 * len(letters)) :]
    phrase, at = " ".join(nearest).casefold(), len(" ".join(nearest))
    for position in range(len(letters) - 1, -1, -1):
        at = phrase.rfind(letters[position], 0, at)
        while at > 0 and position == 0 and phrase[at - 1].isalnum():
            at = phrase.rfind(letters[0], 0, at)
        if at < 0:
            return ()
    long = tuple(phrase[at:].split())
    return (
        tuple(nearest[-len(long) :])
        if len(" ".join(long)) > len(short) + 1 and long[0] not in _WORDS["boundaries"]
        else ()
    )


def _starts_clause_or_follows_article(words: Sequence[str], span: NameSpan) -> bool:
    start = len(words) - len(span.words)
    return len(span.words) < MAX_NAME_WORDS and (start == 0 or words[start - 1].casefold() in _WORDS["articles"])


def _is_plain_name(inside: str, words: Sequence[str]) -> bool:
    """Return whether a note in brackets may be a name in another language, as in "Der Rechnungslauf (billing run)"."""
    plain = all(word.isalpha() and word not in _WORDS["boundaries"] for word in words)
    return plain and inside[0].islower() and words[0] not in _WORDS["descriptions"] and len(words) < MAX_NAME_WORDS


def _span_before(text: str, end: int) -> NameSpan:
    before = text[:end].rstrip(" ,(-–—")
    if quoted := re.search(r"[\"“„«]([^\"“”„«»]{2,60})[\"”“»]\Z", before[-62:]):
        return _whole(quoted[1])
    words = _words(_last_clause(before))
    count = _count_name_words(words[::-1])
    return NameSpan(words[len(words) - count :], count < MAX_NAME_WORDS, is_first=False)


def _span_after(text: str, start: int) -> NameSpan:
    after = text[start : start + 200]
    if quoted := re.match(r"\s*(?:\w+\s+)?[\"“„«]([^\"“”„«»]{2,60})[\"”“»]", after):
        return _whole(quoted[1])
    words = _without_determiners(_words(_BREAK.split(after, maxsplit=1)[0]))
    count = _count_name_words(words)
    return NameSpan(words[:count], count < MAX_NAME_WORDS)


def _count_name_words(words: Sequence[str]) -> int:
    """Count the words up to a boundary; words such as "of" are part of a name between two of its words."""
    count = 0
    for position, word in enumerate(words[:MAX_NAME_WORDS]):
        if word.casefold() in _WORDS["joiners"] and count:
            continue
        if word.casefold() in _WORDS["boundaries"] or word.casefold() in _WORDS["joiners"]:
            break
        count = position + 1
    return count


def _whole(phrase: str) -> NameSpan:
    return NameSpan(_without_determiners(_words(phrase)))


def _without_determiners(words: tuple[str, ...]) -> tuple[str, ...]:
    start = next((at for at, word in enumerate(words) if word.casefold() not in _WORDS["boundaries"]), len(words))
    return words[start:]


def _last_clause(text: str) -> str:
    return _BREAK.split(text)[-1]


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.rstrip(".-/&@") for word in _WORD.findall(text))
