"""Build the graph of the map: the most mentioned entities, and the strength of the ties between them.

A tie is normalised pointwise mutual information (Bouma, "Normalized (Pointwise) Mutual Information in Collocation
Extraction", 2009): how much more often two entities are mentioned together than expected by chance, so that an entity
that is mentioned everywhere is not tied to everything. Entities that were mentioned together only once count half.

Communities are entities that are tied to each other more than to others. Their numbers are stable.

Where ties are spread evenly, many partitions are about as good as the best, and a few new ties change which one is
best. So the communities of the last map are continued: each entity moves only if the move improves the partition.
Communities from scratch replace them only if they are clearly better. A continued community keeps its number.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.features.map.store import NO_COMMUNITY
from pipeline.index import communities

Ids = NDArray[np.int64]
Numbers = NDArray[np.float64]
Pausing = Callable[[], bool]

# Pairs grow with the square of the mentions, and a long list of names proves little about any two of them.
MAX_PAIRED = 24
# With fewer entities that are mentioned twice, those that are mentioned once are also shown.
FEW = 200
# The strongest ties of every entity are drawn, even if they are weak compared with those of others.
OWN_TIES = 6

# A pair without other ties is not a community.
LEAST = 3
# Minimum gain in modularity for communities from scratch.
CLEARLY = 0.05
# A group gets the number of an old community if it contains at least this share of it, or consists of it by this share.
LEAST_SHARE = 1 / 3


@dataclass(frozen=True, slots=True)
class MapGraph:
    """Entities in row order, and ties between their positions in that order: `low` < `high`, the strongest first.

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


def build_graph(memory: Ids, entity: Ids, most: int, most_ties: int) -> MapGraph:
    """Return the graph of (memory, entity) mentions, given in order, with limited numbers of entities and ties."""
    seqs, named, counts = np.unique(entity, return_inverse=True, return_counts=True)
    chosen = _most_mentioned(counts, most)
    position_of = np.full(len(seqs), -1, np.int64)
    position_of[chosen] = np.arange(len(chosen))
    at = position_of[named]
    low, high, together = _count_pairs(memory[at >= 0], at[at >= 0], len(chosen))
    mentions = counts[chosen]
    weight = _npmi(together, mentions[low], mentions[high], len(np.unique(memory))) * together / (together + 1)
    order = np.lexsort((high, low, -weight))
    order = order[weight[order] > 0]
    order = _keep_strongest(low[order], high[order], order, len(chosen), most_ties)
    return MapGraph(seqs[chosen], mentions, low[order], high[order], weight[order], together[order])


def measure_change(graph: MapGraph, places: Ids, ties: Iterable[tuple[int, int]]) -> float:
    """Return the share of entities or of ties that changed since the last map, whichever is larger; 1 if all did."""
    before, now = set(places.tolist()), set(graph.seqs.tolist())
    drawn = set(ties)
    tied = set(zip(graph.seqs[graph.low].tolist(), graph.seqs[graph.high].tolist(), strict=True))
    shares = [len(old ^ new) / len(old | new) for old, new in ((before, now), (drawn, tied)) if old or new]
    return max(shares, default=0.0)


def _most_mentioned(counts: Ids, most: int) -> Ids:
    """Return the positions of the most mentioned entities, in row order."""
    often = np.flatnonzero(counts > 1)
    fit = often if len(often) >= FEW else np.arange(len(counts))
    return np.sort(fit[np.argsort(-counts[fit], kind="stable")][:most])


def _count_pairs(memory: Ids, position: Ids, size: int) -> tuple[Ids, Ids, Ids]:
    """Return the pairs of positions that share a memory, and the number of memories that they share."""
    keys = []
    for step in range(1, MAX_PAIRED):
        same = np.flatnonzero(memory[:-step] == memory[step:])
        if not len(same):
            break
        keys.append(position[same] * size + position[same + step])
    if not keys:
        return (np.empty(0, np.int64),) * 3
    pairs, together = np.unique(np.concatenate(keys), return_counts=True)
    return pairs // size, pairs % size, together


def _npmi(together: Ids, first: Ids, second: Ids, memories: int) -> Numbers:
    share = together / memories
    # A pair that occurs in every memory proves nothing.
    surprise = np.maximum(-np.log(share), 1e-9)
    return np.log(share * memories / first * (memories / second)) / surprise


def _keep_strongest(low: Ids, high: Ids, order: Ids, size: int, most: int) -> Ids:
    """Limit ties, given the strongest first, to the strongest of each position and then the strongest of all."""
    if len(order) <= most:
        return order
    rank = np.arange(len(order))
    ends, ranks = np.concatenate((low, high)), np.concatenate((rank, rank))
    by_end = np.lexsort((ranks, ends))
    ends, ranks = ends[by_end], ranks[by_end]
    nth = np.arange(len(ends)) - np.searchsorted(ends, np.arange(size))[ends]
    own = np.zeros(len(order), bool)
    own[ranks[nth < OWN_TIES]] = True
    strongest = np.concatenate((np.flatnonzero(own), np.flatnonzero(~own)))[:most]
    return order[np.sort(strongest)]


def find_communities(graph: MapGraph, before: Ids, pausing: Pausing) -> Ids | None:
    """Return the community of each position, `NO_COMMUNITY` for an entity without one; None when asked to pause.

    `before` are the numbers of the last map, `NO_COMMUNITY` where there was none.
    """
    strength = graph.strength()
    network = communities.Network.build(strength, graph.low, graph.high, graph.weight)
    total = strength.sum() or 1.0
    # An entity without a community starts alone.
    start = np.where(before == NO_COMMUNITY, -2 - np.arange(graph.size), before)
    continued = communities.move_nodes(network, start, 1 / total, range(graph.size), pausing)
    fresh = None if continued is None else communities.find_communities(network, 1 / total, pausing)
    if continued is None or fresh is None:
        return None
    # Modularity is the quality as a share of all weight, which the strengths count twice.
    gain = (network.measure(fresh, 1 / total) - network.measure(continued, 1 / total)) * 2 / total
    chosen = fresh if gain > CLEARLY else continued
    members = (np.flatnonzero(chosen == name).tolist() for name in np.unique(chosen))
    groups = sorted((group for group in members if len(group) >= LEAST), key=lambda group: (-len(group), group))
    numbers = np.full(graph.size, NO_COMMUNITY, np.int64)
    for number, group in zip(number_communities(groups, before), groups, strict=True):
        numbers[group] = number
    return numbers


def number_communities(groups: Sequence[Sequence[int]], before: Ids) -> list[int]:
    """Return a number for each group of positions: that of the community it continues, else the lowest free one."""
    sizes = Counter(before.tolist())
    shared = [Counter(before[group].tolist()) for group in groups]
    claims = sorted(
        (-count, number, index)
        for index, counts in enumerate(shared)
        for number, count in counts.items()
        if number != NO_COMMUNITY and count >= LEAST_SHARE * min(sizes[number], len(groups[index]))
    )
    numbers: dict[int, int] = {}
    for _, number, index in claims:
        if index not in numbers and number not in numbers.values():
            numbers[index] = number
    taken = set(numbers.values())
    free = (number for number in range(2 * len(groups)) if number not in taken)
    return [numbers[index] if index in numbers else next(free) for index in range(len(groups))]
