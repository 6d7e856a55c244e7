"""Communities of the map: entities that are tied to each other more than to the rest, under numbers that last.

Found by the Leiden method (Traag, Waltman and van Eck, "From Louvain to Leiden: guaranteeing well-connected
communities", 2019). Where ties are spread evenly, many partitions are about as good as the best, and a few other ties
lead from one to the next. So the communities of the last drawing go on, each entity moving where it gains by it, until
those found from scratch are clearly better; and a community that goes on keeps its number.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence

import igraph
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


def communities(graph: MapGraph, before: Ids, pausing: Pausing) -> Ids | None:
    """Return the community of each place, `STRAY` for those that belong to none; None when asked to pause.

    `before` are the numbers of the last drawing, `STRAY` where there was none.
    """
    # Who belonged to none begins alone.
    gone_on = _settle(graph, np.where(before == STRAY, -2 - np.arange(graph.size), before), pausing)
    if gone_on is None:
        return None
    ties = as_igraph(graph)
    fresh = ties.community_leiden(objective_function="modularity", weights="weight", n_iterations=-1).membership
    if pausing():
        return None
    better = ties.modularity(fresh, "weight") > ties.modularity(gone_on, "weight") + CLEARLY
    chosen = np.array(fresh if better else gone_on)
    found = (np.flatnonzero(chosen == name).tolist() for name in np.unique(chosen))
    groups = sorted((group for group in found if len(group) >= LEAST), key=lambda group: (-len(group), group))
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


def as_igraph(graph: MapGraph) -> igraph.Graph:
    """Return the ties as a graph of igraph, whose chance is the same each time."""
    igraph.set_random_number_generator(random.Random(SEED))  # noqa: S311 - no secret: the same map each time
    edges = list(zip(graph.low.tolist(), graph.high.tolist(), strict=True))
    return igraph.Graph(graph.size, edges, edge_attrs={"weight": graph.weight.tolist()})


def _settle(graph: MapGraph, numbers: Ids, pausing: Pausing) -> list[int] | None:
    """Let entities move from one community to another until none gains by it; return the community of each.

    The library's refinement would tear apart and join anew what only has to go on: in measurements 1.5 % of entities
    changed their community instead of 0.3 %.
    """
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
    settled: list[int] = np.unique(home, return_inverse=True)[1].tolist()
    return settled


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
