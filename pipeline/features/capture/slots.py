"""Extract from a sentence which facts it sets or ends: `subject.attribute = value`.

A sentence names a known fact with a value of the same form, ends known facts, states a fact about the user or a tool of
the project, or states a port, a version or an owner in one of a few forms.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pipeline.features.relations.replacements import HEDGES
from pipeline.kernel.records import FactKey
from pipeline.text.names import COMPONENTS, canonical_name, fact_words, is_named_in, is_same_fact
from pipeline.text.personal_facts import PROJECT, USER, attribute_of_user, find_stated_fact, is_about_user, skip_lead

_GONE: Final = r"(?P<gone>[^,;.!?]{2,60}?)"
_END: Final = (
    r"(?=\s*(?:$|[,;.!]|\s(?:since|because|and|it|seit|weil|und|desde|porque|y|lo|depuis|car|et|on|any ?more)\b))"
)
_OFF_EN: Final = (
    r"(?:gone|dead|no more|(?:switched|turned) off|shut ?down|decommissioned|removed|retired|torn down|deleted|"
    r"dismantled)"
)
_OFF_DE: Final = r"(?:abgeschaltet|abgestellt|stillgelegt|entfernt|gelöscht|abgebaut|außer betrieb|weg)"
_OFF_ES: Final = r"(?:apagad[oa]s?|desactivad[oa]s?|eliminad[oa]s?|retirad[oa]s?|borrad[oa]s?)"
_OFF_FR: Final = r"(?:éteinte?s?|arrêtée?s?|supprimée?s?|désactivée?s?|retirée?s?|débranchée?s?)"
# Each expression names the thing that is gone.
_ENDINGS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bno (?:more )?{_GONE} any ?(?:more|longer)\b",
        rf"\bno longer (?:has|have|uses?|needs?|exposes?|owns?)\s+(?:an? |any |its |our |the )?{_GONE}{_END}",
        rf"\b(?:does|do|has|is|are)(?:n't| not) (?:have|use|need|expose|got)?\s*(?:an? |any |the )?{_GONE} any ?more\b",
        rf"\bthere(?:'s| is| are) no (?:more |longer an? )?{_GONE}{_END}",
        rf"^{_GONE} (?:no longer exists?|(?:was|is|are|were|has been|have been|got) (?:now )?{_OFF_EN})\b",
        rf"\bkein\w* {_GONE} mehr\b",
        rf"^{_GONE} (?:(?:gibt es|existiert) nicht mehr|(?:wurden?|ist|sind) (?:jetzt |gestern |heute )?{_OFF_DE})\b",
        rf"\b(?:wir|ich) haben? {_GONE} (?:gestern |heute |jetzt )?{_OFF_DE}\b",
        rf"\bya no (?:hay|tiene|tenemos|usa|usamos|existe)\s+(?:el |la |un |una |ningún |ninguna )?{_GONE}{_END}",
        rf"^{_GONE} (?:ya no existe|(?:está|están|fue|ha sido|han sido) {_OFF_ES})\b",
        rf"\bn'(?:y )?(?:a|ont|avons|est) plus (?:de |d'|du |des |la |le )?{_GONE}{_END}",
        rf"^{_GONE} (?:n'existe plus|(?:a été|ont été|est|sont) (?:désormais )?{_OFF_FR})\b",
    )
)
_OF_PROJECT: Final = re.compile(
    r"\b(?:we|our|wir|unser\w*|usamos|utilizamos|nuestr\w+|nous|on|notre|this project)\b", re.IGNORECASE
)
_NO_LONGER: Final = re.compile(
    r"\b(?:no longer|any ?more|any longer|stopped using|nicht (?:mehr|länger)|kein\w*\b.{1,40}\bmehr|ya no|dej[ée] de|"
    r"n'?e? ?\w+ plus)\b",
    re.IGNORECASE,
)


def names_what_is_gone(sentence: str) -> bool:
    """Return whether a sentence says that a thing no longer exists."""
    return any(_find_gone(sentence.strip()))


def find_ended_facts(sentence: str, current_values: Mapping[FactKey, Any]) -> tuple[FactKey, ...]:
    """Return the known facts that a sentence ends, given their current values."""
    text = sentence.strip()
    for gone in _find_gone(text):
        if ended := _match_gone(gone, fact_words(text), current_values):
            return ended
    if _NO_LONGER.search(text):
        return tuple(key for key, value in current_values.items() if _names_value(text, key, value))
    return ()


def _find_gone(text: str) -> Iterator[frozenset[str]]:
    for pattern in _ENDINGS:
        for match in pattern.finditer(text):
            yield fact_words(match["gone"]) - COMPONENTS


def _match_gone(gone: frozenset[str], words: frozenset[str], keys: Iterable[FactKey]) -> tuple[FactKey, ...]:
    return tuple(key for key in keys if gone and _ends(gone, words, fact_words(key.subject), fact_words(key.attribute)))


def _ends(gone: frozenset[str], words: frozenset[str], subject: frozenset[str], attribute: frozenset[str]) -> bool:
    is_named = gone <= subject | attribute and is_named_in(subject, words)
    # If a thing is gone, so are all its attributes; otherwise the attribute must be named.
    return is_named and (gone <= subject or is_named_in(attribute, words))


def _names_value(text: str, key: FactKey, value: Any) -> bool:
    """Return whether a negated sentence names the current value of a fact and its subject."""
    if not re.search(rf"(?<![\w.]){re.escape(str(value))}(?![\w.]*\w)", text, re.IGNORECASE):
        return False
    if key.subject == USER:
        return is_about_user(text)
    if key.subject == PROJECT:
        return _OF_PROJECT.search(text) is not None
    return is_named_in(fact_words(key.subject), fact_words(text))


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
