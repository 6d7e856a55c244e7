"""The graph that is drawn as a map: the entities that are mentioned most, and how strongly two of them are tied.

A tie is normalised pointwise mutual information (Bouma, "Normalized (Pointwise) Mutual Information in Collocation
Extraction", 2009): how much more often two are mentioned together than chance would have it, so that who is mentioned
everywhere is not tied to everything. What was seen once proves little and counts half.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.store.entities import MAX_PAIRED

Ids = NDArray[np.int64]
Numbers = NDArray[np.float64]

# With fewer entities that are mentioned twice, those that are mentioned once are shown too.
FEW = 200
# The strongest ties of every entity are drawn, however weak beside those of others.
OWN_TIES = 6


@dataclass(frozen=True, slots=True)
class MapGraph:
    """Entities in row order, and ties between their places in that order: `low` < `high`, the strongest first.

    `mentions` counts the memories that mention an entity, `memories` those that mention both ends of a tie.
    """

    seqs: Ids
    mentions: Ids
    low: Ids
    high: Ids
    weight: Numbers
    memories: Ids

    @property
    def size(self) -> int:
        """Return the number of entities."""
        return len(self.seqs)

    def strength(self) -> Numbers:
        """Return how strongly each entity is tied to all others together."""
        ends = np.concatenate((self.low, self.high))
        return np.bincount(ends, np.concatenate((self.weight, self.weight)), self.size).astype(np.float64)


def mapped(memory: Ids, entity: Ids, most: int, most_ties: int) -> MapGraph:
    """Return the graph of (memory, entity) mentions, given in order: at most so many entities and ties."""
    seqs, named, counts = np.unique(entity, return_inverse=True, return_counts=True)
    chosen = _most_mentioned(counts, most)
    place = np.full(len(seqs), -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    at = place[named]
    low, high, together = _pairs(memory[at >= 0], at[at >= 0], len(chosen))
    mentions = counts[chosen]
    weight = _npmi(together, mentions[low], mentions[high], len(np.unique(memory))) * together / (together + 1)
    order = np.lexsort((high, low, -weight))
    order = order[weight[order] > 0]
    order = _strongest(low[order], high[order], order, len(chosen), most_ties)
    return MapGraph(seqs[chosen], mentions, low[order], high[order], weight[order], together[order])


def change(graph: MapGraph, places: Ids, ties: Iterable[tuple[int, int]]) -> float:
    """Return which share of entities or ties came or went since a drawing; 1 where all did."""
    before, now = set(places.tolist()), set(graph.seqs.tolist())
    drawn = set(ties)
    tied = set(zip(graph.seqs[graph.low].tolist(), graph.seqs[graph.high].tolist(), strict=True))
    shares = [len(old ^ new) / len(old | new) for old, new in ((before, now), (drawn, tied)) if old or new]
    return max(shares, default=0.0)


def _most_mentioned(counts: Ids, most: int) -> Ids:
    """Return the places of the entities that are mentioned most, in row order."""
    often = np.flatnonzero(counts > 1)
    fit = often if len(often) >= FEW else np.arange(len(counts))
    return np.sort(fit[np.argsort(-counts[fit], kind="stable")][:most])


def _pairs(memory: Ids, place: Ids, size: int) -> tuple[Ids, Ids, Ids]:
    """Return which two places stand in one memory, and in how many."""
    keys = []
    for step in range(1, MAX_PAIRED):
        same = np.flatnonzero(memory[:-step] == memory[step:])
        if not len(same):
            break
        keys.append(place[same] * size + place[same + step])
    if not keys:
        return (np.empty(0, np.int64),) * 3
    found, together = np.unique(np.concatenate(keys), return_counts=True)
    return found // size, found % size, together


def _npmi(together: Ids, one: Ids, other: Ids, memories: int) -> Numbers:
    share = together / memories
    # What stands together in every memory there is tells nothing.
    surprise = np.maximum(-np.log(share), 1e-9)
    surplus: Numbers = np.log(share * memories / one * (memories / other)) / surprise
    return surplus


def _strongest(low: Ids, high: Ids, order: Ids, size: int, most: int) -> Ids:
    """Cut ties, given the strongest first, to the strongest of each place and then the strongest of all."""
    if len(order) <= most:
        return order
    rank = np.arange(len(order))
    ends, ranks = np.concatenate((low, high)), np.concatenate((rank, rank))
    by_end = np.lexsort((ranks, ends))
    ends, ranks = ends[by_end], ranks[by_end]
    nth = np.arange(len(ends)) - np.searchsorted(ends, np.arange(size))[ends]
    own = np.zeros(len(order), bool)
    own[ranks[nth < OWN_TIES]] = True
    kept = np.concatenate((np.flatnonzero(own), np.flatnonzero(~own)))[:most]
    return order[np.sort(kept)]
