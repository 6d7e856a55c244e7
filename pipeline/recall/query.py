"""What is asked of recall, what its words say of that, and what it answers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from pipeline.recall.annotations import NOTHING, Annotations
from pipeline.recall.time_ranges import TimeRange, parse_time_range
from pipeline.records import Filter, Memory
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


class ChannelState(StrEnum):
    """What a channel had to say."""

    OK = "ok"
    LATE = "late"
    OFF = "off"
    COLD = "cold"


class Channel(StrEnum):
    """A way to find memories."""

    LEXICAL = "lexical"
    DENSE = "dense"
    GRAPH = "graph"


# The graph is off until it earns its place: docs/recall.md has the figures.
SEARCHED = (Channel.LEXICAL, Channel.DENSE)


@dataclass(frozen=True, slots=True)
class Query:
    """One question: text, number of results, filter, deadline in milliseconds, and whether each hit is explained.

    `channels` are those that are searched; any other is off. Of the best `k`, those stay that are at least so probably
    about the question.
    """

    text: str
    k: int = 10
    filter: Filter = field(default_factory=Filter)
    budget_ms: int = 250
    explain: bool = False
    channels: tuple[Channel, ...] = SEARCHED
    least_relevance: float = 0.0


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


@dataclass(frozen=True, slots=True)
class ChannelReport:
    """How a channel fared and how long it took."""

    state: ChannelState
    took_ms: float


@dataclass(frozen=True, slots=True)
class ChannelSignal:
    """A hit in one channel: its rank there (None when it was not among the channel's best), raw score, and share."""

    rank: int | None
    score: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Lift:
    """A neighbour that lifted a hit, and by how much of its score."""

    part: str
    memory_id: str
    contribution: float


@dataclass(frozen=True, slots=True)
class Signals:
    """Why a hit stands where it stands.

    `parts` add up to its score; `channels` group some of them. `coverage` is the share of the question's information
    (summed idf) that the memory's words hold, `closeness` its cosine where unrelated texts are at 0, `relevance` how
    probably it is about the question.
    """

    channels: Mapping[Channel, ChannelSignal]
    parts: Mapping[str, float]
    lifted_by: tuple[Lift, ...]
    coverage: float
    closeness: float
    relevance: float = 0.0


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that was found: its score, how probably it is about the question (0 to 1), and the reasons if asked."""

    memory: Memory
    score: float
    relevance: float
    signals: Signals | None = None
    annotations: Annotations = NOTHING


@dataclass(frozen=True, slots=True)
class Answer:
    """What recall answers: hits best first, how each channel fared, and whether each knew all that was indexed."""

    hits: tuple[Hit, ...]
    channels: Mapping[Channel, ChannelReport]
    took_ms: float
    settled: bool = True

    @property
    def degraded(self) -> bool:
        """Tell whether a channel that should have answered did not."""
        return any(report.state in (ChannelState.LATE, ChannelState.COLD) for report in self.channels.values())
