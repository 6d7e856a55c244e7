"""Build the graph in which arcs are detected: memories, and how strongly two of them belong together.

Two memories are tied by shared names (an entity, a tag, a rare word: the rarer, the stronger), by meaning, and by a
shared session. The further apart in time, the weaker the tie. Every sum runs in a fixed order, so that the same
memories always give the same graph.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from pipeline.features.arcs.store import Strand
from pipeline.index.communities import Network, find_communities
from pipeline.index.vectors import VectorRows
from pipeline.kernel.records import EntityKind
from pipeline.kernel.times import parse
from pipeline.text.tokens import search_tokens

Vectors = Callable[[Sequence[int]], VectorRows]
# Millions of ties are summed before most are dropped: each number takes four bytes until then.
Places = NDArray[np.int32]
Weights = NDArray[np.floating]

# A name in more than this share of all memories does not distinguish any of them.
COMMON_SHARE = 0.2
COMMON_LEAST = 12
# A young workspace is treated as the start of a larger one, in which its few subjects are rare.
UNSEEN = 50
# Each memory is tied to this many later memories with the same name. Otherwise ties would grow with the square of a
# name's mentions.
REACH = 12
ENTITY, TAG, WORD, SESSION, MEANING = 1.0, 1.0, 0.35, 0.15, 1.6
# By meaning a memory is tied only to its nearest memories, and only if they exceed the mean of all pairs by this many
# deviations.
NEAREST = 8
OUTSTANDING = 2.0
# In a small workspace with few subjects hardly any pair exceeds the mean by that much.
SURELY_ALIKE = 0.9
# After this many days a tie has lost half of the share that time can take from it.
SLOW_DAYS = 60.0
TIME_SHARE = 0.5
STRONGEST = 16
BLOCK = 128
READ = 2048
# By meaning a memory is compared with this many memories before and after it in time. Names tie at any distance in
# time.
AROUND = 5_000
SAMPLED = 2048
# Mean weight of the ties between members of a cluster.
LEAST_MEAN_WEIGHT = 0.18
# A member needs this share of its cluster's mean strength; otherwise it is in the cluster by chance.
LEAST_SHARE = 0.25
LEAST_STRENGTH = 0.5
UNCHARACTERISTIC = frozenset({EntityKind.DATE, EntityKind.PORT, EntityKind.VERSION})


@dataclass(frozen=True, slots=True)
class Graph:
    """Ties between memories by their positions in a list: `first` < `second`, each pair once, with its weight."""

    size: int
    first: Places
    second: Places
    weight: Weights


def list_terms(strand: Strand) -> list[str]:
    """Return the distinct terms of a memory's text, in order."""
    return list(dict.fromkeys(search_tokens(strand.content)))


def tie_strands(
    strands: Sequence[Strand],
    terms: Sequence[Sequence[str]],
    mentions: Iterable[tuple[int, int]],
    vectors: Vectors | None,
    pausing: Callable[[], bool],
) -> Graph | None:
    """Tie memories, given in order of time; return None when asked to pause."""
    positions = {strand.seq: position for position, strand in enumerate(strands)}
    entities: dict[object, list[int]] = {}
    for seq, entity in sorted(mentions):
        if seq in positions:
            entities.setdefault(entity, []).append(positions[seq])
    near = _none(len(strands)) if vectors is None else _near(vectors, strands, positions, pausing)
    if near is None or pausing():
        return None
    parts = [
        _tie_by_features(entities, len(strands), ENTITY),
        _tie_by_features(_by_feature(strand.tags for strand in strands), len(strands), TAG),
        _tie_by_features(_by_feature(terms), len(strands), WORD),
        _in_session(strands),
        near,
    ]
    return _prune(_sum_graphs(parts, strands))


def _by_feature(features: Iterable[Iterable[str]]) -> dict[object, list[int]]:
    positions: dict[object, list[int]] = {}
    for position, names in enumerate(features):
        for name in names:
            positions.setdefault(name, []).append(position)
    return positions


def _tie_by_features(features: Mapping[object, Sequence[int]], size: int, share: float) -> Graph:
    """Tie memories that share a feature, each to the next ones in time, with a weight by the feature's rarity."""
    most = max(COMMON_LEAST, int(size * COMMON_SHARE))
    groups = [sorted(positions) for positions in features.values() if 1 < len(positions) <= most]
    if not groups:
        return _none(size)
    position = np.concatenate([np.asarray(positions, np.int32) for positions in groups])
    lengths = np.asarray([len(positions) for positions in groups], np.int32)
    owner = np.repeat(np.arange(len(groups), dtype=np.int32), lengths)
    # A name in two of many memories weighs 1, a common name little.
    whole = size + UNSEEN
    rarity = (share * (np.log(whole / lengths) / math.log(whole / 2)) ** 2).astype(np.float32)
    # A memory has few ties per name, however frequent: the weight of a long list is spread over them.
    parts = []
    for step in range(1, REACH + 1):
        same = np.flatnonzero(owner[:-step] == owner[step:]) if len(owner) > step else np.empty(0, np.int64)
        parts.append((position[same], position[same + step], np.maximum(rarity[owner[same]], 0)))
    return Graph(size, *(np.concatenate(column) for column in zip(*parts, strict=True)))


def _in_session(strands: Sequence[Strand]) -> Graph:
    """Tie each memory to the next two of its session."""
    sessions: dict[str, list[int]] = {}
    for position, strand in enumerate(strands):
        if strand.session_id is not None:
            sessions.setdefault(strand.session_id, []).append(position)
    pairs = [
        (first_place, second_place, SESSION / step)
        for positions in sessions.values()
        for step in (1, 2)
        for first_place, second_place in zip(positions, positions[step:], strict=False)
    ]
    if not pairs:
        return _none(len(strands))
    first, second, weight = zip(*pairs, strict=True)
    return Graph(
        len(strands), np.asarray(first, np.int32), np.asarray(second, np.int32), np.asarray(weight, np.float32)
    )


def _near(
    vectors: Vectors, strands: Sequence[Strand], places: Mapping[int, int], pausing: Callable[[], bool]
) -> Graph | None:
    """Tie memories that are among each other's nearest in meaning, by how far they exceed the usual similarity."""
    rows = _read(vectors, strands, places, pausing)
    if rows is None:
        return None
    owners, matrix = rows
    if len(owners) < 3:
        # Too few to compute what is usual.
        return _none(len(strands))
    mean, deviation = _usual(matrix)
    level = min(mean + OUTSTANDING * deviation, SURELY_ALIKE)
    pairs: list[tuple[Places, Places, Weights]] = []
    for start in range(0, len(owners), BLOCK):
        if pausing():
            return None
        low = max(0, start - AROUND)
        cosines = matrix[start : start + BLOCK] @ matrix[low : start + BLOCK + AROUND].T
        count, known = cosines.shape
        own = np.arange(count)
        cosines[own, own + start - low] = -1
        nearest = min(NEAREST, known - 1)
        neighbours = np.argpartition(cosines, -nearest, axis=1)[:, -nearest:]
        ends = np.repeat(own + start, nearest)
        other_ends = neighbours.ravel() + low
        cosine = np.take_along_axis(cosines, neighbours, axis=1).ravel()
        outstanding = cosine > level
        # Rounded because the last bits depend on the number of rows that are multiplied at once.
        weight = np.round(np.minimum((cosine[outstanding] - level) / (1 - level), 1), 3).astype(np.float32)
        pairs.append((owners[ends[outstanding]], owners[other_ends[outstanding]], weight))
    first, second, weight = (np.concatenate(column) for column in zip(*pairs, strict=True))
    # Each direction contributes half: a memory that is nearest only in one direction counts half.
    return Graph(len(strands), np.minimum(first, second), np.maximum(first, second), MEANING * (0.3 + weight) / 2)


def _read(
    vectors: Vectors, strands: Sequence[Strand], places: Mapping[int, int], pausing: Callable[[], bool]
) -> tuple[Places, NDArray[np.float32]] | None:
    """Return the positions that have a vector, ascending, and the vectors of their first passages."""
    owners: list[int] = []
    matrices: list[NDArray[np.float32]] = []
    seqs = sorted(strand.seq for strand in strands)
    for start in range(0, len(seqs), READ):
        if pausing():
            return None
        rows = vectors(seqs[start : start + READ])
        # While a table is being replaced it may contain several rows of a memory: use the first.
        known, at = np.unique(rows.seqs, return_index=True)
        owners.extend(places[int(seq)] for seq in known)
        matrices.append(rows.matrix[at])
    if not owners:
        return np.empty(0, np.int32), np.empty((0, 0), np.float32)
    order = np.argsort(np.asarray(owners, np.int32), kind="stable")
    return np.asarray(owners, np.int32)[order], np.ascontiguousarray(np.concatenate(matrices)[order])


def _usual(matrix: NDArray[np.float32]) -> tuple[float, float]:
    """Return the mean and the deviation of the cosines of this workspace's pairs, which depend on its encoder."""
    sample = matrix[:: max(1, len(matrix) // SAMPLED)]
    cosines = sample @ sample.T
    # The matrix contains each pair twice, and zeros on its diagonal.
    np.fill_diagonal(cosines, 0)
    pairs = len(sample) * (len(sample) - 1)
    mean = float(cosines.sum(dtype=np.float64)) / pairs
    squares = float(np.square(cosines, out=cosines).sum(dtype=np.float64)) / pairs
    return round(mean, 3), round(math.sqrt(max(squares - mean * mean, 0.0)), 3)


def _sum_graphs(parts: Sequence[Graph], strands: Sequence[Strand]) -> Graph:
    size = len(strands)
    keys = np.concatenate([part.first * np.int64(size) + part.second for part in parts])
    order = np.argsort(keys, kind="stable")
    keys, weights = keys[order], np.concatenate([part.weight for part in parts])[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    weight = np.add.reduceat(weights, starts, dtype=np.float64) if len(starts) else np.empty(0)
    first, second = (ends.astype(np.int32) for ends in np.divmod(keys[starts], max(size, 1)))
    days = np.asarray([parse(strand.occurred_at).timestamp() / 86_400 for strand in strands], np.float32)
    apart = np.abs(days[first] - days[second])
    weight *= 1 - TIME_SHARE + TIME_SHARE / (1 + apart / SLOW_DAYS)
    return Graph(size, first, second, np.round(weight, 4).astype(np.float32))


def _prune(graph: Graph) -> Graph:
    """Keep each memory's strongest ties; a tie stays if it is among the strongest of either end."""
    count = len(graph.first)
    ends = np.concatenate([graph.first, graph.second])
    ties = np.tile(np.arange(count, dtype=np.int32), 2)
    order = np.lexsort((ties, -graph.weight[ties], ends))
    ends, ties = ends[order], ties[order]
    begins = np.searchsorted(ends, ends, side="left")
    strongest = np.unique(ties[np.arange(len(ends)) - begins < STRONGEST])
    return Graph(graph.size, graph.first[strongest], graph.second[strongest], graph.weight[strongest])


def _none(size: int) -> Graph:
    return Graph(size, np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))


def find_clusters(graph: Graph, pausing: Callable[[], bool]) -> list[list[int]] | None:
    """Return the clusters of at least two memories, in order of their first memory; None when asked to pause.

    The constant Potts model makes the size of a cluster independent of the number of other memories.
    """
    network = Network.build(np.ones(graph.size), graph.first, graph.second, graph.weight)
    labels = find_communities(network, LEAST_MEAN_WEIGHT, pausing)
    if labels is None:
        return None
    clusters: dict[int, list[int]] = {}
    for position, label in enumerate(labels.tolist()):
        clusters.setdefault(label, []).append(position)
    return [positions for positions in clusters.values() if len(positions) > 1]


def measure_strengths(graph: Graph, clusters: Sequence[Sequence[int]]) -> list[float]:
    """Return how strongly each position is tied to its own cluster."""
    home = np.full(graph.size, -1, np.int32)
    for number, places in enumerate(clusters):
        home[places] = number
    own = (home[graph.first] == home[graph.second]) & (home[graph.first] >= 0)
    ends = np.concatenate((graph.first[own], graph.second[own]))
    return cast(list[float], np.bincount(ends, np.tile(graph.weight[own], 2), graph.size).tolist())


def drop_strays(clusters: Sequence[Sequence[int]], strength: Sequence[float]) -> list[list[int]]:
    """Return the clusters without the positions that are weakly tied to their cluster."""
    trimmed = []
    for positions in clusters:
        least = max(LEAST_STRENGTH, LEAST_SHARE * sum(strength[position] for position in positions) / len(positions))
        trimmed.append([position for position in positions if strength[position] >= least])
    return trimmed
