"""Communities of the map: entities that are tied to each other more than to the rest, under numbers that last.

Found by the Louvain method (Blondel et al., "Fast unfolding of communities in large networks", 2008). Where ties are
spread evenly, many partitions are about as good as the best, and a few other ties lead from one to the next. So the
communities of the last drawing go on, each entity moving where it gains by it, until those found from scratch are
clearly better; and a community that goes on keeps its number.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from pipeline.jobs.map.graph import Ids, MapGraph
from pipeline.store.maps import STRAY

SEED = 7
# A pair that is tied to nobody else is no community.
LEAST = 3
MAX_SWEEPS = 20
# By how much communities found from scratch must be better, in modularity.
CLEARLY = 0.05
# A community has the number of another when it holds at least this share of it, or is made of it to this share.
LEAST_SHARE = 1 / 3

Pausing = Callable[[], bool]
Groups = list[set[int]]


def communities(graph: MapGraph, before: Ids, pausing: Pausing) -> Ids | None:
    """Return the community of each place, `STRAY` for those that belong to none; None when asked to pause.

    `before` are the numbers of the last drawing, `STRAY` where there was none.
    """
    # Who belonged to none begins alone.
    alone = -2 - np.arange(graph.size)
    gone_on = _settled(graph, np.where(before == STRAY, alone, before), pausing)
    found = None if gone_on is None else _found(graph, pausing)
    fresh = None if found is None else _settled(graph, found, pausing)
    if gone_on is None or fresh is None:
        return None
    better = _modularity(graph, fresh) > _modularity(graph, gone_on) + CLEARLY
    large = (sorted(group) for group in (fresh if better else gone_on) if len(group) >= LEAST)
    groups = sorted(large, key=lambda group: (-len(group), group))
    numbers = np.full(graph.size, STRAY, np.int64)
    for number, group in zip(numbered(groups, before), groups, strict=True):
        numbers[group] = number
    return numbers


def numbered(groups: Sequence[Sequence[int]], before: Ids) -> list[int]:
    """Return a number for each group of places: that of the community which it goes on from, else the lowest free."""
    sizes = Counter(before.tolist())
    shared = [Counter(before[group].tolist()) for group in groups]
    claims = sorted(
        (-count, number, place)
        for place, counts in enumerate(shared)
        for number, count in counts.items()
        if number != STRAY and count >= LEAST_SHARE * min(sizes[number], len(groups[place]))
    )
    numbers: dict[int, int] = {}
    for _, number, place in claims:
        if place not in numbers and number not in numbers.values():
            numbers[place] = number
    taken = set(numbers.values())
    free = (number for number in range(2 * len(groups)) if number not in taken)
    return [numbers[place] if place in numbers else next(free) for place in range(len(groups))]


def _found(graph: MapGraph, pausing: Pausing) -> Ids | None:
    """Find communities from scratch."""
    from networkx import Graph
    from networkx.algorithms.community import louvain_partitions

    ties = Graph()
    ties.add_nodes_from(range(graph.size))
    ties.add_weighted_edges_from(zip(graph.low.tolist(), graph.high.tolist(), graph.weight.tolist(), strict=True))
    numbers = np.zeros(graph.size, np.int64)
    for level in louvain_partitions(ties, seed=SEED):
        for number, group in enumerate(level):
            numbers[list(group)] = number
        if pausing():
            return None
    return numbers


def _settled(graph: MapGraph, numbers: Ids, pausing: Pausing) -> Groups | None:
    """Let entities move from one community to another until none gains by it."""
    ties: list[list[tuple[int, float]]] = [[] for _ in range(graph.size)]
    for low, high, weight in zip(graph.low.tolist(), graph.high.tolist(), graph.weight.tolist(), strict=True):
        ties[low].append((high, weight))
        ties[high].append((low, weight))
    degree = graph.strength().tolist()
    home = numbers.tolist()
    total: dict[int, float] = {}
    for place, name in enumerate(home):
        total[name] = total.get(name, 0.0) + degree[place]
    for _ in range(MAX_SWEEPS):
        if pausing():
            return None
        if not _sweep(ties, degree, home, total):
            break
    groups: dict[int, set[int]] = {}
    for place, name in enumerate(home):
        groups.setdefault(name, set()).add(place)
    return list(groups.values())


def _sweep(
    ties: Sequence[Sequence[tuple[int, float]]], degree: Sequence[float], home: list[int], total: dict[int, float]
) -> int:
    """Move everybody to where it gains most; return how many moved."""
    moves = 0
    whole = sum(degree) or 1.0
    for place, near in enumerate(ties):
        here = home[place]
        towards: dict[int, float] = {here: 0.0}
        for other, weight in near:
            towards[home[other]] = towards.get(home[other], 0.0) + weight
        total[here] -= degree[place]
        burden = degree[place] / whole
        best, gain = here, towards[here] - burden * total[here]
        for there, weight in towards.items():
            better = weight - burden * total[there]
            if better > gain + 1e-9:
                best, gain = there, better
        total[best] += degree[place]
        home[place] = best
        moves += best != here
    return moves


def _modularity(graph: MapGraph, groups: Groups) -> float:
    """Return by how much more of all weight lies within groups than chance would put there."""
    home = np.zeros(graph.size, np.int64)
    for number, group in enumerate(groups):
        home[list(group)] = number
    whole = graph.weight.sum()
    if not whole:
        return 0.0
    inside = graph.weight[home[graph.low] == home[graph.high]].sum() / whole
    shares = np.bincount(home, graph.strength()) / (2 * whole)
    return float(inside - (shares**2).sum())
