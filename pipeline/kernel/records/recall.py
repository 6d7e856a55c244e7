"""Queries and answers of recall, and explanations of results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pipeline.kernel.records import Filter, Memory


class ChannelState(StrEnum):
    """The state of a channel in an answer."""

    OK = "ok"
    LATE = "late"
    OFF = "off"
    COLD = "cold"


class Channel(StrEnum):
    """A search method of recall."""

    LEXICAL = "lexical"
    DENSE = "dense"
    GRAPH = "graph"


class Step(StrEnum):
    """A step after the channels that an answer can omit."""

    RERANKER = "reranker"
    GRAPH = "graph"
    CURRENCY = "currency"
    STALENESS = "staleness"
    NAMED = "named"
    FOLLOW_UP = "follow_up"
    EXCERPTS = "excerpts"


# The channels that answer a query on their own; the graph starts from their hits.
SEARCHED_CHANNELS = (Channel.LEXICAL, Channel.DENSE)


@dataclass(frozen=True, slots=True)
class Query:
    """A query: text, number of results, filter, deadline in milliseconds, and whether to explain each hit.

    `channels` are the channels to search. Hits with a lower relevance than `min_relevance` are left out; None leaves
    out only surely irrelevant hits, 0 none.
    """

    text: str
    k: int = 10
    filter: Filter = field(default_factory=Filter)
    budget_ms: int = 250
    explain: bool = False
    channels: tuple[Channel, ...] = tuple(Channel)
    min_relevance: float | None = None


@dataclass(frozen=True, slots=True)
class Annotations:
    """Ids of memories that contradict a hit, and whether its code changed (None if it has no code, or it is unknown).

    `missing` means that this machine's checkout lacks the file. `settled` means that a current keyed fact contradicts
    the hit: the fact is right. `superseded_by` is the id of a later memory about the same subject. `broken` says what
    the memory cites that is no longer true in this machine's checkout.
    """

    contradicted_by: tuple[str, ...] = ()
    stale: bool | None = None
    settled: bool = False
    superseded_by: str | None = None
    missing: bool = False
    broken: tuple[str, ...] = ()


NOTHING = Annotations()


@dataclass(frozen=True, slots=True)
class ChannelReport:
    """The state of a channel, and its duration."""

    state: ChannelState
    took_ms: float


@dataclass(frozen=True, slots=True)
class ChannelSignal:
    """A hit in a channel: its rank (None if it was not among the channel's best), raw score, and share."""

    rank: int | None
    score: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Lift:
    """A neighbor that raised a hit's score, and by how much."""

    part: str
    memory_id: str
    contribution: float


@dataclass(frozen=True, slots=True)
class UsedBridge:
    """A vocabulary bridge: a term, another name for it, how it was found, and the memory that shows it, if any."""

    term: str
    other: str
    source: str
    memory_id: str | None


@dataclass(frozen=True, slots=True)
class Signals:
    """The reasons for the rank of a hit.

    `parts` add up to its score; `channels` group some of them. `coverage` is the share of the query's information
    (summed idf) that the memory's words contain, `closeness` its cosine with unrelated texts at 0, `relevance` the
    probability that it is about the query. `bridges` are those by which the memory was found.
    """

    channels: Mapping[Channel, ChannelSignal]
    parts: Mapping[str, float]
    lifted_by: tuple[Lift, ...]
    coverage: float
    closeness: float
    relevance: float = 0.0
    bridges: tuple[UsedBridge, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory in the results: its score, its relevance (probability, 0 to 1), and the reasons if requested.

    `literal_score` is the score's part for an identifier or phrase of the query. `origin` is the memory's source if
    a team is searched too: the team's name, or `local`.
    """

    memory: Memory
    score: float
    relevance: float
    signals: Signals | None = None
    annotations: Annotations = NOTHING
    origin: str | None = None
    literal_score: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of recall: best hits first, the state of each channel, and whether its index was complete.

    A searched team is also a channel, `team:` and its name. An answer that `is_stored` was computed by a worker.
    """

    hits: tuple[Hit, ...]
    channels: Mapping[str, ChannelReport]
    took_ms: float
    settled: bool = True
    is_stored: bool = False

    @property
    def degraded(self) -> bool:
        """Return whether a channel that should have answered did not."""
        return any(report.state in (ChannelState.LATE, ChannelState.COLD) for report in self.channels.values())


@dataclass(frozen=True, slots=True)
class ChannelView:
    """A memory in a channel: its rank among all scored memories (None without a score), and its raw score."""

    rank: int | None
    score: float
    considered: bool


@dataclass(frozen=True, slots=True)
class MemoryExplanation:
    """Why a memory is or is not among the hits: its rank (None if it was not ranked) and the reasons in words."""

    memory: Memory
    rank: int | None
    score: float | None
    channels: Mapping[Channel, ChannelView]
    signals: Signals | None
    relevance: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionHit:
    """A past session that is about a query, and the turn in it that says most about the query.

    `at`, `turn_seq`, `role` (`user` or `assistant`) and `quote` belong to the turn. `relevance` is the probability
    that the session is about the query, 0 to 1; `is_relevant` means that it is high enough to be shown unasked.
    """

    session_id: str
    agent: str | None
    title: str | None
    at: str
    turn_seq: int
    role: str
    quote: str
    score: float
    relevance: float
    is_relevant: bool
