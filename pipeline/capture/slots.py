"""Extract `subject.attribute = value` from a sentence with a clear subject.

Either the sentence names a known key with a value of the same form, or it states a port, a version or an owner in one
of a few forms.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pipeline.records import FactKey, Memory
from pipeline.text.names import canonical_name

_SUBJECT = (
    r"^(?:(?:the|our|my|der|die|das|unser\w?|mein\w?|el|la|nuestr[oa]|mi|le|notre|mon|ma)\s+)?"
    r"(?P<subject>[^\W\d][\w-]*(?:\s+(?:server|service|api|database|db|proxy|backend|frontend|cluster))?)\s+"
)
_PORT = re.compile(
    rf"{_SUBJECT}(?:[^\W\d]+\s+){{0,4}}?(?:(?:port|puerto)\s+(?P<port>\d{{2,5}})|(?:is|ist|está|est)\s+(?:now\s+|jetzt\s+|"
    r"ahora\s+|maintenant\s+)?(?:on|auf|en|sur)\s+(?P<bare>\d{4,5}))\b(?!\s*(?:ms|s|%)(?!\w))",
    re.IGNORECASE,
)
_VERSION = re.compile(
    rf"{_SUBJECT}(?:is|runs|uses|needs|ist|läuft|nutzt|braucht|es|usa|est|utilise)\s+(?:on|auf|en|sur)?\s*"
    r"(?:version\s+)(?P<value>v?\d+(?:\.\d+){0,3})\b",
    re.IGNORECASE,
)
_OWNER = re.compile(
    r"^(?P<value>[A-ZÀ-Þ]\w+(?:\s[A-ZÀ-Þ]\w+)?)\s+(?:owns|maintains|leads)\s+(?:the\s+|our\s+)?"
    r"(?P<subject>[\w-]+(?:\s+[\w-]+){0,2}?)(?:\s+(?:service|team|module|component))?[.!]?$"
)
# Words that cannot be the subject of a key.
_POINTS = frozenset(
    [
        "it",
        "this",
        "that",
        "they",
        "he",
        "she",
        "we",
        "i",
        "you",
        "es",
        "er",
        "sie",
        "wir",
        "ich",
        "du",
        "eso",
        "esto",
        "ellos",
        "yo",
        "tu",
        "il",
        "elle",
        "on",
        "nous",
        "ça",
        "cela",
        "everything",
    ]
)


@dataclass(frozen=True, slots=True)
class Slot:
    """A key and the value that a sentence gives it."""

    subject: str
    attribute: str
    value: Any


def find_slot(sentence: str, known: Callable[[str], Iterable[Memory]]) -> Slot | None:
    """Return a sentence's slot; `known` lists the facts whose attribute occurs in a lower-case text."""
    return _find_known(sentence, known(sentence.casefold())) or _find_stated(sentence)


def _find_known(sentence: str, facts: Iterable[Memory]) -> Slot | None:
    lowered = sentence.casefold()
    for fact in facts:
        key = fact.key
        if key is None or not _is_named(key, lowered):
            continue
        value = fact.details.get("value")
        if isinstance(value, int) and not isinstance(value, bool):
            numbers = re.findall(r"(?<![\w.])\d{1,9}(?![\w.]*\d)", sentence)
            if len(numbers) == 1:
                return Slot(key.subject, key.attribute, int(numbers[0]))
    return None


def _is_named(key: FactKey, lowered: str) -> bool:
    return all(
        re.search(rf"(?<!\w){re.escape(name.replace('_', ' '))}(?!\w)", lowered)
        for name in (key.subject, key.attribute)
    )


def _find_stated(sentence: str) -> Slot | None:
    if match := _PORT.search(sentence):
        return _slot(match["subject"], "port", int(match["port"] or match["bare"]))
    if match := _VERSION.search(sentence):
        return _slot(match["subject"], "version", match["value"])
    if match := _OWNER.search(sentence):
        return _slot(match["subject"], "owner", match["value"])
    return None


def _slot(subject: str, attribute: str, value: Any) -> Slot | None:
    name = canonical_name(subject)
    return None if not name or name in _POINTS else Slot(name, attribute, value)
