"""Whether a later text says what brought about something that an earlier one reports."""

import re
from dataclasses import dataclass
from functools import lru_cache

from pipeline.jobs.phrases import FOUND_CAUSE, GIVES_REASON, HEDGES, TROUBLE
from pipeline.jobs.replacing import sentences, stems

_COMMA = re.compile(r"[,;]")
_RESOLVED = re.compile(
    r"\b(?:fixed|solved|resolved|repaired|cured|works again|recovered|green again|all clear|behoben|gelöst|läuft wieder"
    r"|arreglad\w+|resuelt\w+|réparé\w*|corrigé\w*|résolu\w*|corrigid\w+|resolvid\w+|исправ\w+|починил\w*"
    r"|виправ\w+|полагоди\w+)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Tie:
    """What ties two memories beside their words: a session in common, a ticket or identifier that both name."""

    session: bool = False
    names: bool = False
    nearest: bool = False


def explains(later: str, earlier: str, tie: Tie) -> bool:
    """Tell whether a later text says what caused what an earlier one reports as going wrong."""
    if not (tie.session or tie.names) or not _reports(earlier):
        return False
    reported = stems(earlier)
    return any(_explains(sentence, later, reported, tie) for sentence in sentences(later))


@lru_cache(maxsize=4_000)
def gives_cause(text: str) -> bool:
    """Tell whether a text says what caused something."""
    return any(
        (FOUND_CAUSE.search(sentence) or GIVES_REASON.search(sentence)) and not HEDGES.search(sentence)
        for sentence in sentences(text)
    )


def _reports(text: str) -> bool:
    """Tell whether a text reports trouble without explaining it or telling of its end."""
    return any(TROUBLE.search(part) and not HEDGES.search(part) for part in sentences(text)) and not (
        FOUND_CAUSE.search(text) or GIVES_REASON.search(text) or _RESOLVED.search(text)
    )


def _explains(sentence: str, later: str, reported: frozenset[str], tie: Tie) -> bool:
    if HEDGES.search(sentence):
        return False
    if FOUND_CAUSE.search(sentence):
        shared = len(reported & stems(later))
        return tie.names or shared >= 2 or (tie.nearest and shared >= 1)
    if reason := GIVES_REASON.search(sentence):
        # What stands before the reason is what it explains; where the sentence begins with it, what follows the comma.
        effect = sentence[: reason.start()]
        if not stems(effect):
            effect = " ".join(_COMMA.split(sentence[reason.end() :])[1:])
        told = stems(effect)
        return bool(TROUBLE.search(effect)) and len(told & reported) >= 2 and 2 * len(told & reported) >= len(told)
    return False
