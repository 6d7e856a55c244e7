"""What is asked of recall, what it answers, and why a memory is among the answers or not."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pipeline.records import Filter, Memory


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


class Step(StrEnum):
    """Work after the channels that an answer can do without."""

    CURRENCY = "currency"
    STALENESS = "staleness"
    NAMED = "named"
    EXCERPTS = "excerpts"


SEARCHED = tuple(Channel)


@dataclass(frozen=True, slots=True)
class Query:
    """One question: text, number of results, filter, deadline in milliseconds, and whether each hit is explained.

    `channels` are those that are searched; any other is off. What is less probably about the question than
    `min_relevance` is left out; None leaves out what surely is not, 0 nothing.
    """

    text: str
    k: int = 10
    filter: Filter = field(default_factory=Filter)
    budget_ms: int = 250
    explain: bool = False
    channels: tuple[Channel, ...] = SEARCHED
    min_relevance: float | None = None


@dataclass(frozen=True, slots=True)
class Annotations:
    """The ids of memories that deny one, and whether its code changed (None if there is none, or nobody can say).

    `missing` tells that this machine's checkout lacks its file.
    `settled` tells that a keyed fact that holds denies it: the fact is right. `superseded_by` is the id of what was
    said later of the same thing.
    """

    contradicted_by: tuple[str, ...] = ()
    stale: bool | None = None
    settled: bool = False
    superseded_by: str | None = None
    missing: bool = False


NOTHING = Annotations()


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
    """A memory that was found: its score, how probably it is about the question (0 to 1), and the reasons if asked.

    `origin` is whose memory it is of where a team's is asked beside this machine's: the team's name, or `local`.
    """

    memory: Memory
    score: float
    relevance: float
    signals: Signals | None = None
    annotations: Annotations = NOTHING
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What recall answers: hits best first, how each channel fared, and whether each knew all that was indexed.

    A team that was asked is a channel too, `team:` and its name.
    """

    hits: tuple[Hit, ...]
    channels: Mapping[str, ChannelReport]
    took_ms: float
    settled: bool = True

    @property
    def degraded(self) -> bool:
        """Return whether a channel that should have answered did not."""
        return any(report.state in (ChannelState.LATE, ChannelState.COLD) for report in self.channels.values())


@dataclass(frozen=True, slots=True)
class ChannelView:
    """How one channel saw a memory: its rank among all that it scored (None for no score), and its raw score."""

    rank: int | None
    score: float
    considered: bool


@dataclass(frozen=True, slots=True)
class MemoryExplanation:
    """Why a memory is or is not among the hits: its rank (None when it was never ranked) and the reasons in words."""

    memory: Memory
    rank: int | None
    score: float | None
    channels: Mapping[Channel, ChannelView]
    signals: Signals | None
    relevance: float
    reasons: tuple[str, ...]
