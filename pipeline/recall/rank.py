"""From raw channel scores to one order.

    fused(m)   = Σ weight(channel) · normalized(channel, m)
    context(m) = fused(m) + 0.3 · mean of the fused scores beside m in its session + 0.2 · best fused score of its session
    score(m)   = context(m) + small nudges for importance and recency

A memory is judged by itself, by what stands beside it, and by its session: an answer often shares no word with the
question, but the turn before it does.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipeline.recall.query import Channel, ChannelSignal, Hit, Signals
from pipeline.records import Memory
from pipeline.times import parse

WEIGHTS: Mapping[Channel, float] = {Channel.LEXICAL: 0.5, Channel.DENSE: 0.5}
NEIGHBOUR_WEIGHT = 0.3
SESSION_WEIGHT = 0.2
IMPORTANCE_WEIGHT = 0.04
RECENCY_WEIGHT = 0.02
RECENCY_HALF_LIFE_DAYS = 30.0


@dataclass(frozen=True, slots=True)
class ChannelScores:
    """One channel's view of the pool: raw scores by memory, ranks of its best, and the span that normalizes them."""

    raw: Mapping[int, float]
    ranks: Mapping[int, int]
    floor: float
    ceiling: float

    def normalized(self, seq: int) -> float:
        """Return the score on a scale from 0 (the floor) to 1 (the channel's best)."""
        span = self.ceiling - self.floor
        if span <= 0:
            return 1.0 if seq in self.ranks else 0.0
        return min(1.0, max(0.0, (self.raw.get(seq, self.floor) - self.floor) / span))


@dataclass(frozen=True, slots=True)
class Pool:
    """The memories that may be shown, and everything that ranks them."""

    memories: Mapping[int, Memory]
    channels: Mapping[Channel, ChannelScores]
    coverage: Mapping[int, float]
    neighbours: Callable[[int, int], Iterable[tuple[int, int]]]


def rank(pool: Pool, limit: int) -> list[Hit]:
    """Order the pool, best first; equal scores go to the newer memory."""
    shares = {seq: _shares(pool, seq) for seq in pool.memories}
    fused = {seq: sum(parts.values()) for seq, parts in shares.items()}
    beside = {seq: NEIGHBOUR_WEIGHT * _beside(pool, fused, seq) for seq in fused}
    session = _sessions(pool, fused)
    newest = max((m.occurred_at for m in pool.memories.values()), default="")
    hits = []
    for seq, memory in pool.memories.items():
        nudge = IMPORTANCE_WEIGHT * (memory.importance - 0.5)
        recency = RECENCY_WEIGHT * _recency(memory, newest)
        lift = SESSION_WEIGHT * session.get(memory.session_id or "", 0.0)
        total = fused[seq] + beside[seq] + lift + nudge + recency
        signals = Signals(
            {c: _signal(pool, c, seq, share) for c, share in shares[seq].items()},
            beside[seq],
            lift,
            nudge,
            recency,
            pool.coverage.get(seq, 0.0),
        )
        hits.append(Hit(memory, total, signals))
    hits.sort(key=lambda hit: (-hit.score, -hit.memory.seq))
    return hits[:limit]


def _shares(pool: Pool, seq: int) -> dict[Channel, float]:
    # When only one channel answered, its weight is the whole.
    total = sum(WEIGHTS[channel] for channel in pool.channels)
    return {c: WEIGHTS[c] / total * scores.normalized(seq) for c, scores in pool.channels.items()}


def _beside(pool: Pool, fused: Mapping[int, float], seq: int) -> float:
    return max((fused.get(other, 0.0) / distance for other, distance in pool.neighbours(seq, 2)), default=0.0)


def _sessions(pool: Pool, fused: Mapping[int, float]) -> dict[str, float]:
    best: dict[str, float] = {}
    for seq, score in fused.items():
        session = pool.memories[seq].session_id
        if session is not None:
            best[session] = max(score, best.get(session, 0.0))
    return best


def _recency(memory: Memory, newest: str) -> float:
    # Measured from the newest candidate, not from the clock: the same data gives the same answer tomorrow.
    age = (parse(newest) - parse(memory.occurred_at)).total_seconds() / 86400
    return math.exp2(-age / RECENCY_HALF_LIFE_DAYS)


def _signal(pool: Pool, channel: Channel, seq: int, share: float) -> ChannelSignal:
    scores = pool.channels[channel]
    return ChannelSignal(scores.ranks.get(seq), scores.raw.get(seq, scores.floor), share)


def channel_scores(top: Sequence[tuple[int, float]], floor: float) -> ChannelScores:
    """Describe a channel by its best (row number, score) pairs and the score that counts as nothing."""
    raw = dict(top)
    ranks = {seq: place for place, (seq, _) in enumerate(top, start=1)}
    return ChannelScores(raw, ranks, floor, max(raw.values(), default=floor))
