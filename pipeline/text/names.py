"""Names that people and programs spell differently, brought to one form: `Time Zone`, `time-zone`, `timeZone`."""

import re
import unicodedata
from typing import Final

MAX_NAME_CHARS: Final = 200
SEPARATOR: Final = "_"

# They tell C++ from C# and R&D from RD; alone they say nothing.
_TELLING: Final = frozenset("+#&@%")
_QUOTES: Final = frozenset("'\"`´‘’‚‛“”„‟«»‹›ʼ′″")
_WORD_CATEGORIES: Final = frozenset("LMN")
_INVISIBLE: Final = "Cf"
_RUN: Final = re.compile(rf"[^{SEPARATOR}]+")


def canonical_name(text: str) -> str:
    """Bring a name to its one form: folded, words joined by `_`; "" when it holds no letter and no digit."""
    name = _reduced(_humps_apart(unicodedata.normalize("NFKC", text)))
    # Folding and composing can each make work for the other, as can a mark that lost what stood before it.
    while (again := _reduced(name)) != name:
        name = again
    return name


def _humps_apart(text: str) -> str:
    """Put a separator before each hump of a camelCase name; an acronym of two letters or more is one hump."""
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


def _reduced(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text.casefold())
    kept = "".join(map(_kept, folded))
    return SEPARATOR.join(run for run in _RUN.findall(kept) if any(map(str.isalnum, run)))


def _kept(character: str) -> str:
    """Return the character itself, nothing for what only decorates, or else the separator."""
    category = unicodedata.category(character)
    if character in _QUOTES or category == _INVISIBLE:
        return ""
    if character in _TELLING or category[0] in _WORD_CATEGORIES:
        return character
    return SEPARATOR
