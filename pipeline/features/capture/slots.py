"""Extract from a sentence which facts it sets or ends: `subject.attribute = value`.

A sentence names a known fact with a value of the same form, ends known facts, states a fact about the user or a tool of
the project, or states a port, a version or an owner in one of a few forms.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pipeline.features.capture.endings import find_ended_facts
from pipeline.features.relations.replacements import HEDGES
from pipeline.kernel.records import FactKey
from pipeline.text.names import COMPONENTS, canonical_name, fact_words, is_named_in, is_same_fact
from pipeline.text.personal_facts import PROJECT, USER, attribute_of_user, find_stated_fact, skip_lead

_DETERMINER: Final = (
    r"(?:(?:the|our|my|der|die|das|den|dem|unser\w*|mein\w*|el|la|los|nuestr[oa]|mi|le|les|notre|mon|ma)\s+|l')?"
)
_NOUN: Final = r"[^\W\d][\w.'/-]*"
_SUBJECT: Final = rf"{_DETERMINER}(?P<subject>{_NOUN}(?:\s+{_NOUN}){{0,4}}?)"
_NOW: Final = (
    r"(?:(?:now|currently|again|always|jetzt|nun|inzwischen|immer|ahora|ya|siempre|maintenant|désormais|toujours)\s+)*"
)
_RUNS: Final = (
    r"(?:is|are|runs?|listens?|lives?|sits?|has|uses?|(?:has\s+)?(?:moved|changed|switched)|went|ist|läuft|lauscht|hört|"
    r"liegt|hat|nutzt|ist\s+umgezogen|está|es|corre|escucha|tiene|usa|ha\s+pasado|pasó|se\s+ha\s+movido|est|écoute|tourne|"
    r"utilise|a|est\s+passée?|a\s+été\s+déplacée?)"
)
_IS: Final = (
    r"(?:\s*[:=]\s*|\s+(?:is|has\s+changed\s+to|changed\s+to|moved\s+to|ist|lautet|es|está|ha\s+cambiado\s+a|est|"
    r"est\s+passé\s+à)\s+)"
)
_ON: Final = r"(?:(?:on|at|to|auf|an|zu|en|sur|al|a|à|par|por|über|over)\s+)"
_THE: Final = r"(?:(?:the|den|dem|el|le|la)\s+)?"
_OF: Final = r"(?:of|for|on|von|vom|der|des|für|auf|de|del|du|en|sur)"
_PORT_WORD: Final = r"(?:port|puerto)"
# What may follow a value.
_VALUE_END: Final = (
    r"(?=\s*(?:$|[,;.!)]|\s(?:now|again|since|instead|from|and|not|because|please|anyway|for|until|by|"
    r"these|jetzt|nun|seit|statt|und|nicht|weil|bitte|ab|ahora|desde|en\s+vez|y|no|porque|maintenant|depuis|au\s+lieu|et|"
    r"pas|car|désormais)\b))"
)
_STATED_PORT: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_SUBJECT}\s+{_RUNS}\s+{_NOW}(?:{_ON}{_THE})?{_PORT_WORD}\s+(?P<value>\d{{2,5}}){_VALUE_END}",
        rf"{_SUBJECT}\s+{_RUNS}\s+{_NOW}{_ON}{_NOW}(?P<value>\d{{4,5}}){_VALUE_END}",
        rf"{_DETERMINER}{_PORT_WORD}\s+{_OF}\s+{_SUBJECT}{_IS}{_NOW}(?:{_PORT_WORD}\s+)?(?P<value>\d{{2,5}}){_VALUE_END}",
        rf"{_SUBJECT}[\s-]+{_PORT_WORD}{_IS}{_NOW}(?P<value>\d{{2,5}}){_VALUE_END}",
    )
)
_VERSION: Final = re.compile(
    rf"{_SUBJECT}\s+(?:is|runs|uses|needs|ist|läuft|nutzt|braucht|es|usa|est|utilise)\s+{_NOW}(?:{_ON})?"
    rf"version\s+(?P<value>v?\d+(?:\.\d+){{0,3}}){_VALUE_END}",
    re.IGNORECASE,
)
_OWNER: Final = re.compile(
    r"(?P<value>[A-ZÀ-Þ]\w+(?:\s[A-ZÀ-Þ]\w+)?)\s+(?:owns|maintains|leads)\s+(?:the\s+|our\s+)?"
    r"(?P<subject>[\w-]+(?:\s+[\w-]+){0,2}?)(?:\s+(?:service|team|module|component))?[.!]?$"
)
# Words that cannot be part of a subject.
_NO_SUBJECT: Final = re.compile(
    r"\b(?:it|this|that|they|he|she|we|i|you|us|everything|something|nothing|who|which|what|if|says?|said|thinks?|told|"
    r"means|know|never|always|not|no|longer|kein\w*|nicht|plus|es|er|sie|wir|ich|du|man|alles|nie|sagt|eso|esto|ellos|yo|tú?|él|nosotros|dice|nunca|"
    r"il|elle|nous|ça|cela|je|vous|dit|jamais)\b|^on\b",
    re.IGNORECASE,
)
# "Staging's port", but "there's".
_POSSESSIVE: Final = re.compile(r"(?<!\bit)(?<!\bthat)(?<!\bthere)(?<!\bhere)(?<!\bwhat)(?<=\w)'s(?=\s)", re.IGNORECASE)
# A negation alone is no doubt.
_NEGATION: Final = re.compile(r"\b(?:do|does|did)(?:n't| not)\b", re.IGNORECASE)
_NUMBER: Final = re.compile(r"(?<![\w.,:])\d{1,9}(?![\w.,:]*\d)(?!\s*(?:ms|s|%)(?!\w))")
# A value before the change, and a value that is denied.
_EARLIER: Final = re.compile(
    r"\b(?:not|from|instead of|no longer(?: \w+){0,2}|was|nicht(?: mehr)?|von|statt|no|de|en vez de|en lugar de|"
    rf"ya no(?: \w+){{0,2}}|pas|plus|au lieu de|et non)\s+"
    rf"(?:on\s+|auf\s+|en\s+|sur\s+)?(?:{_PORT_WORD}\s+)?\d{{1,9}}\b",
    re.IGNORECASE,
)
_STATES: Final = (
    rf"(?:\b{_RUNS}|\b(?:now|to|but|since|jetzt|nun|auf|sondern|seit|ahora|a|sino|desde|maintenant|à|mais|depuis)|[:=])"
    r"\s*(?:[\w']+\s+){0,4}?"
)
_TEXT_VALUE: Final = re.compile(rf"{_IS}{_NOW}(?P<value>[^\s,;!][^\s,;!]*(?:\s[^\s,;!]+){{0,3}}?)[.!]?{_VALUE_END}")
_DOUBT: Final = re.compile(
    r"\b(?:tomorrow|soon|next (?:week|month|year|sprint|release)|not sure|afaik|i guess|morgen|bald|nächste\w*|wird|"
    r"werden|soll|glaube|denke|mañana|pronto|próxim\w+|va a|creo|supongo|demain|bientôt|prochain\w*|"
    r"va (?:passer|être)|je crois|je pense)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Slot:
    """Keys and the value that a sentence gives them; None ends their values. Several keys end together.

    A certain slot may end a value that a person or an agent stated. An uncertain one may not.
    """

    keys: tuple[FactKey, ...]
    value: Any
    is_certain: bool

    @property
    def is_of_user(self) -> bool:
        """Return whether the facts are about the user."""
        return all(key.subject == USER for key in self.keys)


def find_slot(sentence: str, known: Mapping[FactKey, Any]) -> Slot | None:
    """Return what a sentence sets or ends; `known` contains the current facts and their values."""
    text = _POSSESSIVE.sub("", sentence.strip().replace("’", "'"))
    if stated := _find_stated(text, known):
        return stated
    changed = _find_known(text, known)
    if changed is None or changed.value == known[changed.keys[0]]:
        # A sentence that denies the current value names it, too.
        changed = _find_ended(text, known) or changed
    return changed or _find_personal(text, known)


def _find_ended(text: str, known: Mapping[FactKey, Any]) -> Slot | None:
    ended = find_ended_facts(text, known)
    if not ended or find_stated_fact(text) is not None:
        return None
    # "No longer on 5433 but on 6543" also states the new value.
    if len(ended) == 1 and _is_number(known[ended[0]]) and (number := _read_number(text, ended[0])) is not None:
        return number
    return Slot(ended, None, not _is_doubtful(text))


def _find_personal(text: str, known: Mapping[FactKey, Any]) -> Slot | None:
    stated = find_stated_fact(text)
    if stated is None:
        return None
    key = FactKey(stated.subject, stated.attribute)
    if stated.subject == USER:
        same = [fact for fact in known if fact.subject == USER and attribute_of_user(fact.attribute) == key.attribute]
        key = same[0] if len(same) == 1 else key
        if stated.is_hint and key not in known:
            return None
    else:
        key = _resolve(f"{PROJECT} {key.attribute}", known) or key
    return Slot((key,), stated.value, stated.replaces and not _is_doubtful(text))


def _find_known(text: str, known: Mapping[FactKey, Any]) -> Slot | None:
    words = fact_words(text)
    named = {key: fact_words(f"{key.subject} {key.attribute}") for key in known if key.subject != USER}
    named = {key: name for key, name in named.items() if is_named_in(name, words)}
    # "Staging Redis port" names the port of Redis, not that of staging.
    closest = [key for key, name in named.items() if not any(_contains(other, name) for other in named.values())]
    if len(closest) != 1:
        return None
    value = known[closest[0]]
    if _is_number(value):
        return _read_number(text, closest[0])
    return _read_text(text, closest[0], value) if isinstance(value, str) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _contains(other: frozenset[str], name: frozenset[str]) -> bool:
    return name - COMPONENTS < other - COMPONENTS


def _read_number(text: str, key: FactKey) -> Slot | None:
    current = _EARLIER.sub(" ", text)
    numbers = list(_NUMBER.finditer(current))
    if len(numbers) != 1:
        return None
    number = numbers[0][0]
    if not re.search(rf"{_STATES}{number}\b", current, re.IGNORECASE):
        return None
    is_stated = re.search(rf"{_STATES}{number}{_VALUE_END}", current, re.IGNORECASE) is not None and is_named_in(
        fact_words(key.subject), fact_words(current[: numbers[0].start()])
    )
    return Slot((key,), int(number), is_stated and not _is_doubtful(_until_clause_end(current, numbers[0].end())))


def _read_text(text: str, key: FactKey, value: str) -> Slot | None:
    match = _TEXT_VALUE.search(text)
    before = frozenset() if match is None else fact_words(text[: match.start()])
    if match is None or not is_named_in(fact_words(f"{key.subject} {key.attribute}"), before):
        return None
    # "The host is down" gives no new host: the value must be spelled like the one before.
    if not _is_spelled_alike(match["value"], value):
        return None
    return Slot((key,), match["value"].rstrip("."), not _is_doubtful(_until_clause_end(text, match.end())))


def _is_spelled_alike(new: str, old: str) -> bool:
    marks = (r"[./:@_]", r"\d", r"^[A-ZÀ-Þ]")
    shapes = [[re.search(mark, value) is not None for mark in marks] for value in (new, old)]
    return any(shapes[1]) and any(first and second for first, second in zip(*shapes, strict=True))


def _find_stated(text: str, known: Mapping[FactKey, Any]) -> Slot | None:
    for start in dict.fromkeys((skip_lead(text), 0)):
        for pattern in _STATED_PORT:
            if match := pattern.match(text, start):
                return _slot(match, "port", int(match["value"]), known)
        if match := _VERSION.match(text, start):
            return _slot(match, "version", match["value"], known)
        if match := _OWNER.match(text, start):
            return _slot(match, "owner", match["value"], known)
    return None


def _slot(match: "re.Match[str]", attribute: str, value: Any, known: Mapping[FactKey, Any]) -> Slot | None:
    subject = canonical_name(match["subject"])
    if not subject or _NO_SUBJECT.search(match["subject"]):
        return None
    key = _resolve(f"{subject} {attribute}", known) or FactKey(subject, attribute)
    return Slot((key,), value, not _is_doubtful(_until_clause_end(match.string, match.end("value"))))


def _resolve(name: str, known: Mapping[FactKey, Any]) -> FactKey | None:
    """Return the only known key with the same words."""
    same = [key for key in known if is_same_fact(f"{key.subject} {key.attribute}", name)]
    return same[0] if len(same) == 1 else None


def _until_clause_end(text: str, end: int) -> str:
    """Return a text up to the end of the clause that contains a position: what follows does not qualify it."""
    following = re.search(r"[,;.!]", text[end:])
    return text if following is None else text[: end + following.start()]


def _is_doubtful(text: str) -> bool:
    return HEDGES.search(_NEGATION.sub(" ", text)) is not None or _DOUBT.search(text) is not None
