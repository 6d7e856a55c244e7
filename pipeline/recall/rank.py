"""From raw channel scores to one order.

    fused   = Σ weight(channel) · normalized(channel)
    score   = fused + 0.3 · best fused score beside it in its session, halved at distance two
                    + 0.2 · best fused score of its session
                    + small nudges for importance and recency

A memory is judged by itself, by what stands beside it, and by its session: an answer often shares no word with the
question, but the turn before it does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.recall.query import Channel, ChannelSignal, Signals

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

WEIGHTS: Mapping[Channel, float] = {Channel.LEXICAL: 0.65, Channel.DENSE: 0.35}
NEIGHBOUR_WEIGHT = 0.3
SESSION_WEIGHT = 0.2
IMPORTANCE_WEIGHT = 0.04
RECENCY_WEIGHT = 0.02
RECENCY_HALF_LIFE_DAYS = 30.0
REACH = 2


@dataclass(frozen=True, slots=True)
class ChannelScores:
    """One channel's view of the pool: raw scores, rank among its best (0 for none), and the span that normalizes."""

    raw: Floats
    ranks: Integers
    floor: float
    ceiling: float

    @property
    def normalized(self) -> Floats:
        """Return the scores on a scale from 0 (the floor) to 1 (the channel's best, where that convinces)."""
        span = self.ceiling - self.floor
        if span <= 0:
            return (self.ranks > 0).astype(np.float64)
        return ((self.raw - self.floor) / span).clip(0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Pool:
    """The memories that may be shown, aligned: what ranks each of them. A session of -1 is none."""

    seqs: Integers
    sessions: Integers
    positions: Integers
    importance: Floats
    days: Floats
    channels: Mapping[Channel, ChannelScores]
    coverage: Floats


@dataclass(frozen=True, slots=True)
class Ranking:
    """The pool's order and every part of its scores."""

    pool: Pool
    order: Integers
    shares: Mapping[Channel, Floats]
    neighbours: Floats
    session: Floats
    importance: Floats
    recency: Floats
    score: Floats

    def signals(self, place: int) -> Signals:
        """Explain the memory at a place of the pool."""
        channels = {
            channel: ChannelSignal(
                int(scores.ranks[place]) or None, float(scores.raw[place]), float(self.shares[channel][place])
            )
            for channel, scores in self.pool.channels.items()
        }
        parts = (self.neighbours, self.session, self.importance, self.recency, self.pool.coverage)
        return Signals(channels, *(float(part[place]) for part in parts))


def rank(pool: Pool) -> Ranking:
    """Order the pool, best first; equal scores go to the newer memory."""
    # When only one channel answered, its weight is the whole.
    total = sum(WEIGHTS[channel] for channel in pool.channels)
    shares = {c: WEIGHTS[c] / total * scores.normalized for c, scores in pool.channels.items()}
    fused = sum(shares.values(), np.zeros(len(pool.seqs)))
    neighbours = NEIGHBOUR_WEIGHT * _beside(pool, fused)
    session = SESSION_WEIGHT * _best_of_session(pool, fused)
    importance = IMPORTANCE_WEIGHT * (pool.importance - 0.5)
    # Measured from the newest candidate, not from the clock: the same data gives the same answer tomorrow.
    age = pool.days.max(initial=0.0) - pool.days
    recency = RECENCY_WEIGHT * np.exp2(-age / RECENCY_HALF_LIFE_DAYS)
    score = fused + neighbours + session + importance + recency
    order = np.lexsort((-pool.seqs, -score))
    return Ranking(pool, order, shares, neighbours, session, importance, recency, score)


def channel_scores(
    top: Sequence[tuple[int, float]], floor: float, convincing: float, seqs: Integers, raw: Floats
) -> ChannelScores:
    """Describe a channel by its best (row number, score) pairs and the pool's scores.

    `floor` counts as nothing. Below `convincing` a channel's best does not count in full: the nearest of memories that
    are all far away must not outweigh the one that holds the query's very words.
    """
    ranks = {seq: place for place, (seq, _) in enumerate(top, start=1)}
    ceiling = max(convincing, top[0][1]) if top else floor
    return ChannelScores(raw, np.array([ranks.get(int(seq), 0) for seq in seqs], np.int64), floor, ceiling)


def _beside(pool: Pool, fused: Floats) -> Floats:
    # Sorted by session and position, what stands within reach of a memory follows it within as many rows.
    order = np.lexsort((pool.positions, pool.sessions))
    sessions, positions, scores = pool.sessions[order], pool.positions[order], fused[order]
    best = np.zeros(len(order))
    for step in range(1, REACH + 1):
        distance = positions[step:] - positions[:-step]
        near = (sessions[step:] == sessions[:-step]) & (sessions[step:] >= 0) & (distance <= REACH)
        weight = np.where(near, 1.0 / np.maximum(distance, 1), 0.0)
        best[:-step] = np.maximum(best[:-step], weight * scores[step:])
        best[step:] = np.maximum(best[step:], weight * scores[:-step])
    beside = np.empty(len(order))
    beside[order] = best
    return beside


def _best_of_session(pool: Pool, fused: Floats) -> Floats:
    if not len(pool.seqs):
        return fused
    _, places = np.unique(pool.sessions, return_inverse=True)
    best = np.zeros(int(places.max()) + 1)
    np.maximum.at(best, places, fused)
    return np.where(pool.sessions >= 0, best[places], 0.0)
