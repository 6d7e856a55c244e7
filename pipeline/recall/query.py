"""What the words of a query say of what is asked."""

import re
from dataclasses import dataclass
from datetime import datetime

from pipeline.recall.time_ranges import TimeRange, parse_time_range
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
class ParsedQuery:
    """A query's tokens and identifiers, the time that it names, whether it is about the asker, and asks for a time."""

    tokens: tuple[str, ...]
    identifiers: tuple[str, ...]
    time_range: TimeRange | None
    personal: bool
    asks_time: bool


def parse_query(text: str, now: datetime) -> ParsedQuery:
    """Read a query as of a timestamp (UTC), which relative times count from."""
    return ParsedQuery(
        tuple(search_tokens(text)),
        tuple(identifiers(text)),
        parse_time_range(text, now),
        _PERSONAL.search(text) is not None,
        _ASKS_TIME.search(text) is not None,
    )
