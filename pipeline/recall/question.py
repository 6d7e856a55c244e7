"""What a query asks for, read from its words alone."""

import re
from dataclasses import dataclass
from datetime import datetime

from pipeline.recall.moments import Span, span_of
from pipeline.text.tokens import identifiers, search_tokens

# First person singular in the languages that the analysis knows; the words are few, so a list holds them all.
_PERSONAL = re.compile(
    r"\b(i|i'm|i've|my|mine|me|myself|ich|mein\w{0,2}|mir|mich|je|j'|mon|ma|mes|moi|yo|mi|mis|mío|eu|meus?|minhas?|"
    r"я|мой|моя|моё|мои|моего|моей|мне|меня|мій|моє|мої|мого|моєї|мені|мене)\b|我|私|僕|俺",
    re.IGNORECASE,
)


_ASKS_TIME = re.compile(
    r"\b(when|(what|which) (date|day|month|year|time)|how long|wann|quand|cuándo|quando|когда|коли)\b|"
    r"什么时候|何时|いつ",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Question:
    """A query's tokens and identifiers, the time that it names, whether it is about the asker, and asks for a time."""

    tokens: tuple[str, ...]
    identifiers: tuple[str, ...]
    span: Span | None
    personal: bool
    asks_time: bool


def read_question(text: str, now: datetime) -> Question:
    """Read a query as of a moment (UTC), which relative times count from."""
    return Question(
        tuple(search_tokens(text)),
        tuple(identifiers(text)),
        span_of(text, now),
        _PERSONAL.search(text) is not None,
        _ASKS_TIME.search(text) is not None,
    )
