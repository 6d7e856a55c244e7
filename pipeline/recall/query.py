"""What is asked of recall, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pipeline.records import Memory
from pipeline.store.memories import Filter


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


@dataclass(frozen=True, slots=True)
class Query:
    """One question: text, number of results, filter, deadline in milliseconds."""

    text: str
    k: int = 10
    filter: Filter = field(default_factory=Filter)
    budget_ms: int = 250


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
class Signals:
    """Why a hit stands where it stands: every part adds up to its score."""

    channels: Mapping[Channel, ChannelSignal]
    neighbours: float
    session: float
    importance: float
    recency: float
    coverage: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that was found, with its score and the reasons."""

    memory: Memory
    score: float
    signals: Signals | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What recall answers: hits best first, and how each channel fared."""

    hits: tuple[Hit, ...]
    channels: Mapping[Channel, ChannelReport]
    took_ms: float

    @property
    def degraded(self) -> bool:
        """Tell whether a channel that should have answered did not."""
        return any(report.state in (ChannelState.LATE, ChannelState.COLD) for report in self.channels.values())
