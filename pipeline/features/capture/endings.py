"""Find the facts that a sentence ends without a new value: "Staging has no port any more, it was switched off"."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pipeline.kernel.records import FactKey
from pipeline.text.names import COMPONENTS, fact_words, is_named_in
from pipeline.text.personal_facts import PROJECT, USER, is_about_user

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
