"""Detect statements that return to an earlier choice, and the decisions that they reverse: "we're back to yarn"."""

import re
from functools import lru_cache

from pipeline.jobs.mining.replacements import HEDGES, NEVER, find_replacements, first_sentences, stems

_NEW = r"(?P<new>[^,;:()]{2,60})"
_USE = r"(?:use|using|run|running|on|with|keep|keeping|take|taking)"
_PHRASES = (
    rf"\b(?:back|return(?:ed|ing|s)?|revert(?:ed|ing|s)?|rolled back) (?:on )?(?:to|on|with) {_NEW}",
    rf"\b{_USE} (?P<new>[^,;:()]{{2,40}}?) (?:after all|again)\b",
    rf"\b(?:stay(?:ing)?|stick(?:ing)?) with {_NEW} after all",
    rf"\b(?:zurück|doch wieder|wieder zurück) (?:zu|zum|zur|auf|bei|mit|nach) {_NEW}",
    rf"\b(?:nehmen|nutzen|verwenden|benutzen|fahren)\b[^,;:()]{{0,20}}? (?:doch )?wieder {_NEW}",
    rf"\b(?:volvemos|volvimos|hemos vuelto|regresamos|de vuelta) (?:a|al) {_NEW}",
    rf"\bal final (?:seguimos|nos quedamos|usamos|vamos) (?:con |en )?{_NEW}",
    rf"\b(?:revient|reviens|revenons|revenus?|retour|repasse|repassons) (?:à|au|aux|sur|vers) {_NEW}",
    rf"\bfinalement (?:on|nous) (?:garde|gardons|reste|restons|utilise|utilisons) (?:sur |avec |à )?{_NEW}",
)
_RETURNS = tuple(re.compile(phrase, re.IGNORECASE) for phrase in _PHRASES)
_WORD = re.compile(r"\w[\w.-]*")


@lru_cache(maxsize=4_000)
def find_returned(text: str) -> tuple[str, ...]:
    """List the words of the things to which a text returns."""
    sure = (sentence for sentence in first_sentences(text) if not (HEDGES.search(sentence) or NEVER.search(sentence)))
    named = (match["new"] for sentence in sure for phrase in _RETURNS for match in phrase.finditer(sentence))
    words = (word.strip(".") for name in named for word in _WORD.findall(name)[:4])
    return tuple(dict.fromkeys(word for word in words if stems(word)))


def reverses(newer: str, older: str) -> bool:
    """Tell whether a newer text returns to the thing that an older one says was replaced."""
    returned = stems(" ".join(find_returned(newer)))
    return bool(returned) and any(
        replaced.old & returned and not replaced.new & returned for replaced in find_replacements(older)
    )
