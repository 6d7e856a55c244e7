"""Find the communities of a weighted graph by the Leiden method.

Traag, Waltman and van Eck, "From Louvain to Leiden: guaranteeing well-connected communities", 2019. The method
maximizes the weight inside the communities minus resolution × (community size)² / 2. With nodes of size 1 this is the
constant Potts model. With nodes as large as their strength, and 1 / (sum of strengths) as the resolution, it is
modularity. The paper joins nodes at random while it refines; here a node joins the group with the highest gain.
"""

from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Labels = NDArray[np.int64]
Sizes = NDArray[np.float64]
Pausing = Callable[[], bool]

SEED = 7
# Smaller gains come from rounding; without the limit nodes could move back and forth forever.
LEAST_GAIN = 1e-9
# The method starts again from its result until the quality rises by less than this share.
LEAST_IMPROVEMENT = 0.001
# The number of visited nodes between two checks for a pause.
BETWEEN_PAUSES = 2_000


@dataclass(frozen=True, slots=True)
class Network:
    """An undirected graph: the neighbors of `node` are at `starts[node]` to `starts[node + 1]`, without loops."""

    sizes: Sizes
    starts: "array[int]"
    neighbors: "array[int]"
    weights: "array[float]"

    @classmethod
    def build(cls, sizes: ArrayLike, first: ArrayLike, second: ArrayLike, weight: ArrayLike) -> "Network":
        """Build a graph from its edges, each given once."""
        node_sizes = np.asarray(sizes, np.float64)
        low, high = np.asarray(first, np.int64), np.asarray(second, np.int64)
        ends, others = np.concatenate((low, high)), np.concatenate((high, low))
        order = np.lexsort((others, ends))
        starts = np.searchsorted(ends[order], np.arange(len(node_sizes) + 1))
        weights = np.tile(np.asarray(weight, np.float64), 2)[order]
        return cls(node_sizes, array("q", starts), array("q", others[order]), array("d", weights))

    def __len__(self) -> int:
        return len(self.sizes)

    def owners(self) -> Labels:
        """Return the node of each entry of `neighbors`."""
        return np.repeat(np.arange(len(self)), np.diff(np.asarray(self.starts)))

    def measure(self, labels: Labels, resolution: float) -> float:
        """Return the quality of a partition."""
        inside = labels[self.owners()] == labels[np.asarray(self.neighbors)]
        totals = np.bincount(labels, self.sizes)
        return float(np.asarray(self.weights)[inside].sum() - resolution * (totals**2).sum()) / 2


def find_communities(network: Network, resolution: float, pausing: Pausing) -> Labels | None:
    """Return the community of each node, numbered from 0; None when asked to pause."""
    chance = np.random.default_rng(SEED)
    best: Labels = np.arange(len(network))
    quality = network.measure(best, resolution)
    while True:
        labels = _improve(network, best, resolution, chance, pausing)
        if labels is None:
            return None
        improved = network.measure(labels, resolution)
        if improved > quality:
            best = labels
        if improved <= quality + max(LEAST_GAIN, LEAST_IMPROVEMENT * abs(quality)):
            return best
        quality = improved


def move_nodes(
    network: Network, labels: Labels, resolution: float, order: Sequence[int], pausing: Pausing
) -> Labels | None:
    """Move each node to the community where it gains most, until no node gains; None when asked to pause.

    A node's neighbors are visited again when it has moved. Labels are numbered from 0 afterwards.
    """
    community = np.unique(labels, return_inverse=True)[1].tolist()
    sizes = network.sizes.tolist()
    totals = np.bincount(community, network.sizes, len(network)).tolist()
    members = np.bincount(community, minlength=len(network)).tolist()
    empty = [label for label, count in enumerate(members) if not count]
    queue, queued, visits = deque(order), bytearray(b"\1") * len(network), 0
    while queue:
        visits += 1
        if visits % BETWEEN_PAUSES == 1 and pausing():
            return None
        node = queue.popleft()
        queued[node] = 0
        here, near = community[node], slice(network.starts[node], network.starts[node + 1])
        neighbors = network.neighbors[near]
        totals[here] -= sizes[node]
        toward = _sum_by_community(community, neighbors, network.weights[near])
        there = _best_community(here, toward, totals, resolution * sizes[node])
        if there is None:
            there = here if members[here] == 1 else empty.pop()
        totals[there] += sizes[node]
        if there == here:
            continue
        community[node] = there
        members[there] += 1
        members[here] -= 1
        if not members[here]:
            empty.append(here)
        for neighbor in neighbors:
            if not queued[neighbor] and community[neighbor] != there:
                queued[neighbor] = 1
                queue.append(neighbor)
    return np.unique(community, return_inverse=True)[1]


def _sum_by_community(community: Sequence[int], neighbors: Sequence[int], weights: Sequence[float]) -> dict[int, float]:
    toward: dict[int, float] = {}
    for neighbor, weight in zip(neighbors, weights, strict=True):
        label = community[neighbor]
        toward[label] = toward.get(label, 0.0) + weight
    return toward


def _best_community(here: int, toward: dict[int, float], totals: Sequence[float], burden: float) -> int | None:
    """Return the community with the highest gain, the present one on a tie; None if the node gains most alone."""
    best, gain = here, toward.get(here, 0.0) - burden * totals[here]
    for label, weight in toward.items():
        other = weight - burden * totals[label]
        if other > gain + LEAST_GAIN:
            best, gain = label, other
    return best if gain > -LEAST_GAIN else None


def _improve(
    network: Network, labels: Labels, resolution: float, chance: np.random.Generator, pausing: Pausing
) -> Labels | None:
    """Run the method once: move nodes, refine the communities, do the same with the refined groups as nodes."""
    level, group_of = network, np.arange(len(network))
    while True:
        order = chance.permutation(len(level)).tolist()
        moved = move_nodes(level, labels, resolution, order, pausing)
        if moved is None:
            return None
        groups = _refine(level, moved, resolution, order)
        count = int(groups.max(initial=-1)) + 1
        if count == len(level):
            return moved[group_of]
        labels = np.empty(count, np.int64)
        labels[groups] = moved
        level, group_of = _merge_groups(level, groups, count), groups[group_of]


def _refine(network: Network, labels: Labels, resolution: float, order: Sequence[int]) -> Labels:
    """Divide each community into groups that are well connected inside it; return the group of each node."""
    inner = labels[network.owners()] == labels[np.asarray(network.neighbors)]
    # The weight between a group and the other members of its community.
    outward = np.bincount(network.owners()[inner], np.asarray(network.weights)[inner], len(network)).tolist()
    community, sizes = labels.tolist(), network.sizes.tolist()
    totals = np.bincount(labels, network.sizes).tolist()
    groups, group_sizes, grown = list(range(len(network))), sizes.copy(), bytearray(len(network))

    def is_connected(group: int) -> bool:
        size = group_sizes[group]
        return bool(outward[group] >= resolution * size * (totals[community[group]] - size) - LEAST_GAIN)

    for node in order:
        if grown[node] or not is_connected(node):
            continue
        near = slice(network.starts[node], network.starts[node + 1])
        toward = _sum_by_community(groups, network.neighbors[near], network.weights[near])
        best, gain = node, 0.0
        for group, weight in toward.items():
            other = weight - resolution * sizes[node] * group_sizes[group]
            if community[group] == community[node] and other > gain + LEAST_GAIN and is_connected(group):
                best, gain = group, other
        if best != node:
            groups[node] = best
            outward[best] += outward[node] - 2 * toward[best]
            group_sizes[best] += sizes[node]
            grown[best] = 1
    return np.unique(groups, return_inverse=True)[1]


def _merge_groups(network: Network, groups: Labels, count: int) -> Network:
    """Return a graph whose nodes are the groups and whose edges are the sums between them."""
    first, second = groups[network.owners()], groups[np.asarray(network.neighbors, np.int64)]
    once = first < second
    keys, pairs = np.unique(first[once] * count + second[once], return_inverse=True)
    weight = np.bincount(pairs, np.asarray(network.weights)[once], len(keys))
    return Network.build(np.bincount(groups, network.sizes, count), keys // count, keys % count, weight)
