"""Communities of a weighted graph: groups whose members are tied to each other by more than a given mean weight.

The constant Potts model (Traag, Van Dooren, Nesterov, "Narrow scope for resolution-limit-free community detection",
2011), optimised by moving places and folding communities (Blondel et al., "Fast unfolding of communities", 2008).
Unlike modularity it looks at nothing but a group and its surroundings, so that what happens elsewhere in a workspace
leaves a thread as it is. Deterministic: places are visited in order, and of equal gains the lowest number wins.
"""

from collections.abc import Callable, Sequence

from pipeline.jobs.arc_graph import Graph

LEAST_MEAN_WEIGHT = 0.18
MAX_ROUNDS = 20
MAX_LEVELS = 10
# A member needs this share of its cluster's mean strength, else it only happens to stand there.
LEAST_SHARE = 0.25
LEAST_STRENGTH = 0.5

Ties = list[dict[int, float]]


def clusters(graph: Graph, pausing: Callable[[], bool]) -> list[list[int]] | None:
    """Return the communities of at least two places, in order of their first one; None when asked to pause."""
    ties: Ties = [{} for _ in range(graph.size)]
    for one, other, weight in zip(graph.first.tolist(), graph.second.tolist(), graph.weight.tolist(), strict=True):
        if weight > 0:
            ties[one][other] = weight
            ties[other][one] = weight
    home = list(range(graph.size))
    sizes = [1] * graph.size
    for _ in range(MAX_LEVELS):
        if pausing():
            return None
        moved = _settled(ties, sizes)
        names = {name: number for number, name in enumerate(dict.fromkeys(moved))}
        if len(names) == len(ties):
            break
        moved = [names[name] for name in moved]
        home = [moved[place] for place in home]
        ties, sizes = _folded(ties, sizes, moved, len(names))
    found: dict[int, list[int]] = {}
    for place, name in enumerate(home):
        found.setdefault(name, []).append(place)
    return sorted(places for places in found.values() if len(places) > 1)


def strengths(graph: Graph, found: Sequence[Sequence[int]]) -> list[float]:
    """Return how strongly each place is tied to its own cluster."""
    home = [-1] * graph.size
    for number, places in enumerate(found):
        for place in places:
            home[place] = number
    strength = [0.0] * graph.size
    for one, other, weight in zip(graph.first.tolist(), graph.second.tolist(), graph.weight.tolist(), strict=True):
        if home[one] == home[other] >= 0:
            strength[one] += weight
            strength[other] += weight
    return strength


def without_strays(found: Sequence[Sequence[int]], strength: Sequence[float]) -> list[list[int]]:
    """Return the clusters without the places that are tied to theirs by little."""
    kept = []
    for places in found:
        least = max(LEAST_STRENGTH, LEAST_SHARE * sum(strength[place] for place in places) / len(places))
        kept.append([place for place in places if strength[place] >= least])
    return kept


def _settled(ties: Ties, sizes: Sequence[int]) -> list[int]:
    """Move each place to the community where it gains most, until none moves."""
    home = list(range(len(ties)))
    mass = list(sizes)
    for _ in range(MAX_ROUNDS):
        moves = 0
        for place, near in enumerate(ties):
            here = home[place]
            towards: dict[int, float] = {here: 0.0}
            for other, weight in near.items():
                there = home[other]
                towards[there] = towards.get(there, 0.0) + weight
            mass[here] -= sizes[place]
            burden = LEAST_MEAN_WEIGHT * sizes[place]
            best, gain = here, towards[here] - burden * mass[here]
            for there, weight in towards.items():
                better = weight - burden * mass[there] - gain
                if better > 1e-9 or (better > -1e-9 and there < best and best != here):
                    best, gain = there, weight - burden * mass[there]
            mass[best] += sizes[place]
            if best != here:
                home[place] = best
                moves += 1
        if not moves:
            break
    return home


def _folded(ties: Ties, sizes: Sequence[int], home: Sequence[int], size: int) -> tuple[Ties, list[int]]:
    folded: Ties = [{} for _ in range(size)]
    whole = [0] * size
    for place, near in enumerate(ties):
        here = home[place]
        whole[here] += sizes[place]
        for other, weight in near.items():
            there = home[other]
            if there != here:
                folded[here][there] = folded[here].get(there, 0.0) + weight
    return folded, whole
