"""Canonical forms of names that people and programs spell differently: of facts, and of entities by kind.

A fact is named by the words of its subject and its attribute together, wherever the one ends and the other starts.
"""

import re
import unicodedata
from datetime import date
from functools import lru_cache
from typing import Final

from pipeline.kernel.records import EntityKind
from pipeline.text.lexicon import load_lexicon

# Facts: `Time Zone`, `time-zone`, `timeZone`

MAX_NAME_CHARS: Final = 200
SEPARATOR: Final = "_"

# These distinguish C++ from C# and R&D from RD; alone they mean nothing.
_TELLING: Final = frozenset("+#&@%")
_QUOTES: Final = frozenset("'\"`´‘’‚‛“”„‟«»‹›ʼ′″")
_WORD_CATEGORIES: Final = frozenset("LMN")
_INVISIBLE: Final = "Cf"
_RUN: Final = re.compile(rf"[^{SEPARATOR}]+")


def canonical_name(text: str) -> str:
    """Return the canonical form of a name: folded, words joined by `_`; "" without letters and digits."""
    name = _reduce_name(_humps_apart(unicodedata.normalize("NFKC", text)))
    # Folding and composing can each require the other again, and so can a mark that lost its base letter.
    while (again := _reduce_name(name)) != name:
        name = again
    return name


def _humps_apart(text: str) -> str:
    """Put a separator before each hump of a camelCase name; an acronym of two or more letters is one hump."""
    parts: list[str] = []
    for index, character in enumerate(text):
        if _is_capital(character) and index:
            before = text[index - 1]
            follows_acronym = index > 1 and _is_capital(before) and _is_capital(text[index - 2])
            if (before.isalnum() and not _is_capital(before) and before == before.lower()) or (
                follows_acronym and text[index + 1 : index + 2].islower()
            ):
                parts.append(SEPARATOR)
        parts.append(character)
    return "".join(parts)


def _is_capital(character: str) -> bool:
    # Cherokee folds to its capitals, which therefore mark no hump.
    return character.isupper() and character.casefold() != character


def _reduce_name(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text.casefold())
    characters = "".join(map(_keep_character, folded))
    return SEPARATOR.join(run for run in _RUN.findall(characters) if any(map(str.isalnum, run)))


def _keep_character(character: str) -> str:
    """Return the character itself, nothing for a decoration, or else the separator."""
    category = unicodedata.category(character)
    if character in _QUOTES or category == _INVISIBLE:
        return ""
    if character in _TELLING or category[0] in _WORD_CATEGORIES:
        return character
    return SEPARATOR


# Entities: the canonical name for all spellings of an entity

TRAILING = ".,;:!?'\"`"

_LEADING = "'\"`,;:!?([{<"
_CLOSING = ")]}>"
_PROSE = frozenset(
    {
        EntityKind.PERSON,
        EntityKind.ORGANISATION,
        EntityKind.PLACE,
        EntityKind.PRODUCT,
        EntityKind.NAME,
        EntityKind.DATE,
    }
)
_DRIVE = re.compile(r"[A-Za-z]:/")
_LAST_NUMBER = re.compile(r"[0-9]+(?=[^0-9]*$)")

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_YEAR = r"(?:19|20)[0-9]{2}"
_DAY = r"[0-9]{1,2}"
DATE = re.compile(
    rf"(?<![\w/.-])(?:(?P<y1>{_YEAR})(?P<sep>[-/.])(?P<m1>{_DAY})(?P=sep)(?P<d1>{_DAY})"
    rf"|(?P<d2>{_DAY})(?:st|nd|rd|th)?(?:\s{{1,2}}of)?\s{{1,2}}(?P<m2>{_MONTH}),?\s{{1,2}}(?P<y2>{_YEAR})"
    rf"|(?P<m3>{_MONTH})\s{{1,2}}(?P<d3>{_DAY})(?:st|nd|rd|th)?,?\s{{1,2}}(?P<y3>{_YEAR})"
    rf"|(?P<m4>{_MONTH}),?\s{{1,2}}(?:of\s)?(?P<y4>{_YEAR}))(?=T[0-9]|(?!\w|[-/.][0-9]))",
    re.IGNORECASE | re.ASCII,
)


def canonical_entity_name(kind: EntityKind, surface: str) -> str:
    """Return the canonical name for all spellings of an entity. Idempotent."""
    name = surface
    while (simpler := _simplify(kind, name)) != name:
        name = simpler
    return name


def iso_date(match: re.Match[str]) -> str | None:
    """Return a match of `DATE` as ISO 8601, to the day or the month; None if the date does not exist."""
    parts = {name[0]: value for name, value in match.groupdict().items() if value and name != "sep"}
    month = parts["m"]
    number = int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1
    try:
        exact = date(int(parts["y"]), number, int(parts.get("d", "1")))
    except ValueError:
        return None
    return exact.isoformat() if "d" in parts else exact.isoformat()[:7]


def _simplify(kind: EntityKind, surface: str) -> str:
    name = " ".join(surface.split()).rstrip(TRAILING).lstrip(_LEADING)
    if kind in _PROSE:
        name = name.rstrip(_CLOSING)
    spell = _SPELLINGS.get(kind)
    return spell(name) if spell else name


def _path(name: str) -> str:
    path = re.sub(r"[\\/]+", "/", name)
    path = re.sub(r"^(?:\./)+", "", path)
    path = path.rstrip("/") or path
    # Windows ignores case in names.
    return path.casefold() if _DRIVE.match(path) else path


def _url(name: str) -> str:
    scheme, separator, remainder = name.partition("://")
    if not separator:
        scheme, remainder = "https", name
    host, slash, path = remainder.partition("/")
    address = f"{scheme.lower()}://{host.lower()}{slash}{path}"
    return address.rstrip("/") if remainder.strip("/") else address


def _number(name: str) -> str:
    match = _LAST_NUMBER.search(name)
    return match[0] if match else name


def _package(name: str) -> str:
    folded = name.casefold()
    # Python projects ignore how words are joined; npm scopes and Go modules are paths.
    return folded if "/" in folded else re.sub(r"[-_.]+", "-", folded)


def _absolute_date(name: str) -> str:
    match = DATE.fullmatch(name)
    return (iso_date(match) if match else None) or name.casefold()


_SPELLINGS = {
    EntityKind.FILE: _path,
    EntityKind.IDENTIFIER: lambda name: name.split("(", 1)[0],
    EntityKind.TICKET: lambda name: name.lower() if "#" in name else name.upper(),
    EntityKind.PULL_REQUEST: _number,
    EntityKind.URL: _url,
    EntityKind.VERSION: lambda name: name.casefold().removeprefix("v"),
    EntityKind.PACKAGE: _package,
    EntityKind.COMMAND: lambda name: name.removeprefix("$ "),
    EntityKind.PORT: _number,
    EntityKind.PERSON: lambda name: name.casefold().lstrip("@") or name,
    EntityKind.ORGANISATION: str.casefold,
    EntityKind.PLACE: str.casefold,
    EntityKind.PRODUCT: str.casefold,
    EntityKind.NAME: str.casefold,
    EntityKind.DATE: _absolute_date,
}


# The words of the names of facts: "staging port", "staging db port" and "port of the staging database"

_LEXICON: Final = load_lexicon("fact_words")
_FILLERS: Final = frozenset(_LEXICON.words("fillers"))
COMPONENTS: Final = frozenset(_LEXICON.words("components"))
_SAME: Final = {word: group.split()[0] for group in _LEXICON.words("same") for word in group.split()}
_PHRASES: Final = {phrase: word for phrase, word in _SAME.items() if SEPARATOR in phrase}
_COMPOUND_ENDS: Final = _LEXICON.words("compound_ends")
# A shorter first part of a compound may be the start of another word.
_LEAST_HEAD_CHARS: Final = 5
MAX_CACHED: Final = 16_384


def fact_words(text: str) -> frozenset[str]:
    """Return the words of a name or of a sentence that may name a fact, one form for each meaning."""
    return frozenset(list_fact_words(text))


@lru_cache(maxsize=MAX_CACHED)
def list_fact_words(text: str) -> tuple[str, ...]:
    """Return the words of a name in order, one form for each meaning."""
    name = f"{SEPARATOR}{canonical_name(text)}{SEPARATOR}"
    for phrase, word in _PHRASES.items():
        name = name.replace(f"{SEPARATOR}{phrase}{SEPARATOR}", f"{SEPARATOR}{word}{SEPARATOR}")
    parts = (part for word in name.split(SEPARATOR) if word for part in _split_compound(word))
    return tuple(_SAME.get(part, part) for part in parts if part not in _FILLERS)


def is_same_fact(name: str, other: str) -> bool:
    """Return whether two names have the same words in order, apart from components that one of them leaves out."""
    short, long = sorted((list_fact_words(name), list_fact_words(other)), key=len)
    if not set(short) - COMPONENTS:
        return False
    remaining = list(short)
    for word in long:
        if remaining and word == remaining[0]:
            remaining.pop(0)
        elif word not in COMPONENTS:
            return False
    return not remaining


def is_named_in(name: frozenset[str], words: frozenset[str]) -> bool:
    """Return whether a sentence contains the words of a name; it may leave out components."""
    telling = name - COMPONENTS
    return bool(telling) and telling <= words


def _split_compound(word: str) -> tuple[str, ...]:
    for end in _COMPOUND_ENDS:
        head = word.removesuffix(end).removesuffix("-")
        if head != word and len(head) >= _LEAST_HEAD_CHARS and head in _SAME:
            return head, end
    return (word,)
