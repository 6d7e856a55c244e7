"""Detect statements that reverse an earlier choice: "we're back to yarn", "no GraphQL after all".

A reversal returns to a thing that an older text says was replaced, gives another value to the subject of an older
choice, or denies what an older text states, or the other way round.
"""

import re
from functools import lru_cache

from pipeline.features.relations.replacements import HEDGES, NEVER, find_replacements, first_sentences, stems

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
# What announces that a choice is reversed; "After all, …" at the start of a sentence only explains.
_REVERSAL = re.compile(
    r"(?<=\w )after all\b|\bafter all (?=(?:we|i)\b)|\b(?:go(?:ing|ne)? back on|went back on|on second thoughts?"
    r"|revers(?:e|ed|es|ing) (?:the|our|that|this|my)|chang(?:ed|ing) (?:our|my|his|her|their) minds?"
    r"|overturn(?:ed|ing)?|(?:tak(?:e|ing)|took) (?:that|it|this) back|scrap(?:ped|ping)? that"
    r"|(?:undo(?:ing)?|revok(?:e|ed|ing)|revisit(?:ed|ing)) (?:the|our|that|this)\b[^,;:]{0,40}\bdecisions?"
    r"|doch (?:nicht|wieder|kein\w*|auf|mit|bei|über|per|zu|die|den|das|in)|(?:jetzt|nun|also|dann) doch|rückgängig"
    r"|(?:nehmen|nehme|ziehen)\b[^,;:]{2,40}\bzurück|zurückgenommen|umentschieden|anders entschieden"
    r"|kommando zurück|revidier\w+|al final|después de todo|marcha atrás|cambi(?:ado|amos|é) de (?:opinión|idea)"
    r"|(?:revertimos|revocamos|anulamos|deshacemos) la|nos echamos atrás|finalement|en fin de compte"
    r"|tout compte fait|revien(?:t|s) sur|revenons sur|là-dessus|changé d'avis|marche arrière"
    r"|(?:annule|annulons|annulé) la décision)\b",
    re.IGNORECASE,
)
# Denials and intentions, which a reversal may contain; other hedges are doubts.
_ALLOWED = frozenset(
    {"against", "rejected", "do not", "don't", "did not", "didn't", "will", "shall", "going to", "thought", "abgelehnt"}
)
_DENIED = re.compile(
    r"\b(?:against|no|not|without|never|rejected|dropp(?:ed|ing)|\w+n't|gegen|kein\w*|nicht|ohne|abgelehnt|contra|sin"
    r"|en contra|descarta\w+|contre|pas|sans|refusé\w*|écart\w+|abandonn\w+)\s+"
    r"(?:(?:to|use|using|do|have|any|an?|the|of|for|auf|mit|de|du|la|el|le|usar|utiliser|usamos|utilise)\s+|d'|l')*"
    r"(?P<first>[\w.+#-]+)(?:\s+(?P<second>[\w.+#-]+))?",
    re.IGNORECASE,
)
# "Wir nehmen GraphQL nicht", "GraphQL is out".
_DENIED_BEFORE = re.compile(
    r"(?P<first>[\w.+#-]+)\s+(?:is out|is off the table|nicht|ist raus|queda descartad\w+|no va|est exclue?"
    r"|est écartée?)\b",
    re.IGNORECASE,
)
# What names a choice: a decision, or what something runs on or uses.
_CHOICE = re.compile(
    r"\b(?:decid\w+|decision|settled|agreed|chose|chosen|pick\w*|on|us(?:e|es|ed|ing)|via|with|gets?|keeps?|sends?"
    r"|go(?:es)?|stays?|entschieden|beschlossen|ausgemacht|vereinbart|auf|mit|über|nutz\w+|verwend\w+|nehmen|nimmt"
    r"|bekommt|bleib\w*|decidi\w+|acord\w+|elegi\w+|quedado|en|con|por|usa\w*|utiliza\w*|lleva\w*"
    r"|décidé|convenu|choisi\w*|acté|sur|avec|par|utilis\w+|passe\w*|reste\w*)\b",
    re.IGNORECASE,
)
_PART = re.compile(r"[,;:()–—]|\b(?:because|since|weil|porque|parce|car)\b")
# Words of announcements, which name no subject.
_NOISE = stems(
    "all back second thought decision decide decided settled agreed reversing reversed mind minds overturned revoke "
    "revisit scrap final finally stay stays staying keep keeps get gets got from today morning late thing against "
    "changed doch nun also dann rückgängig entschieden umentschieden entscheidung kommando zurück anders beschlossen "
    "heute morgen gegen bekommt bekommen laufen lief bei bleibt kommt "
    "después todo marcha atrás opinión idea decisión decidido hemos cambiado hoy contra corre corren van va "
    "finalement compte fait avis arrière décision décidé changé aujourd'hui contre tourne tournent passe passent "
    "reste restent"
)
# A long noun with a capital, such as "Terminerinnerungen", names as much as two words.
_LEAST_SHARED, _COMPOUND_CHARS = 2, 9


@lru_cache(maxsize=4_000)
def find_returned(text: str) -> tuple[str, ...]:
    """List the words of the things to which a text returns."""
    sure = (sentence for sentence in first_sentences(text) if not (HEDGES.search(sentence) or NEVER.search(sentence)))
    named = (match["new"] for sentence in sure for phrase in _RETURNS for match in phrase.finditer(sentence))
    words = (word.strip(".") for name in named for word in _WORD.findall(name)[:4])
    return tuple(dict.fromkeys(word for word in words if stems(word)))


@lru_cache(maxsize=4_000)
def find_reversed_subjects(text: str) -> tuple[str, ...]:
    """List the words of the parts of a text that reverse an earlier choice; empty if the text reverses none."""
    words = (word.strip(".") for part in _list_reversals(text) for word in _WORD.findall(part))
    return tuple(dict.fromkeys(word for word in words if stems(word) - _NOISE))


def reverses(newer: str, older: str) -> bool:
    """Tell whether a newer text reverses the choice that an older one states."""
    returned = stems(" ".join(find_returned(newer)))
    if returned and any(
        replaced.old & returned and not replaced.new & returned for replaced in find_replacements(older)
    ):
        return True
    if HEDGES.search(older) and _is_doubtful(older):
        return False
    return any(_reverses(part, newer, older) for part in _list_reversals(newer))


def _reverses(part: str, newer: str, older: str) -> bool:
    subject, known = stems(part) - _NOISE, stems(older) - _NOISE
    shared = subject & known
    denied_now, denied_before = _denied(part), _denied(older)
    # The same thing is denied by one text only, and both are about the same subject.
    turned = shared & (denied_now ^ denied_before)
    if turned:
        return shared > turned or not (subject - turned)
    if shared & denied_now & denied_before:
        return False
    named = stems(newer) - _denied(newer)
    return _shares_most(part, known) and any(
        # The older text chooses something that the newer one does not name.
        _shares_most(stated, subject) and stems(choice) - _NOISE - named
        for stated, choice in _list_choices(older)
    )


def _shares_most(part: str, known: frozenset[str]) -> bool:
    """Tell whether most of the words of a part are known, but not all; unknown words in a row count as one name."""
    weight, unknown, in_name = 0, 0, False
    for word in _WORD.findall(part):
        word_stems = stems(word) - _NOISE
        is_known = bool(word_stems & known)
        weight += is_known * (1 + (word[0].isupper() and len(word) >= _COMPOUND_CHARS))
        unknown += bool(word_stems) and not is_known and not in_name
        in_name = bool(word_stems) and not is_known
    return weight >= _LEAST_SHARED and 0 < unknown < weight


def _list_choices(text: str) -> list[tuple[str, str]]:
    """List the parts of a text that may state a choice, each with the words after the one that introduces it."""
    return [(part, part[match.end() :]) for part in _PART.split(text) if (match := _CHOICE.search(part))]


@lru_cache(maxsize=4_000)
def _list_reversals(text: str) -> tuple[str, ...]:
    """List the parts of a text that reverse a choice; an announcement without a subject refers to the next part."""
    found = []
    for sentence in first_sentences(text):
        if NEVER.search(sentence) or (HEDGES.search(sentence) and _is_doubtful(sentence)):
            continue
        parts = [part for part in _PART.split(sentence) if part.strip()]
        for number, part in enumerate(parts):
            if _REVERSAL.search(part):
                is_announcement = len(stems(_REVERSAL.sub(" ", part)) - _NOISE) <= 1
                found += parts[number : number + 1 + is_announcement]
    return tuple(found)


def _is_doubtful(text: str) -> bool:
    return any(match[0].strip().lower() not in _ALLOWED for match in HEDGES.finditer(text))


def _denied(text: str) -> frozenset[str]:
    words = [match["first"] for match in _DENIED_BEFORE.finditer(text)]
    words += [word for match in _DENIED.finditer(text) for word in match.groups() if word]
    return stems(" ".join(words)) - _NOISE
