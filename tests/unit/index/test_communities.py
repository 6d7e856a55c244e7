"""Communities: as good as the best known ones, connected, the same each time, and interruptible."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pipeline.index.communities import BETWEEN_PAUSES, Network, find_communities, move_nodes
from tests.fakes.properties import examples

# Zachary's karate club, each member's friends of a higher number; the best modularity of all its partitions is known.
KARATE = {
    0: (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31),
    1: (2, 3, 7, 13, 17, 19, 21, 30),
    2: (3, 7, 8, 9, 13, 27, 28, 32),
    3: (7, 12, 13),
    4: (6, 10),
    5: (6, 10, 16),
    6: (16,),
    8: (30, 32, 33),
    9: (33,),
    13: (33,),
    14: (32, 33),
    15: (32, 33),
    18: (32, 33),
    19: (33,),
    20: (32, 33),
    22: (32, 33),
    23: (25, 27, 29, 32, 33),
    24: (25, 27, 31),
    25: (31,),
    26: (29, 33),
    27: (33,),
    28: (31, 33),
    29: (32, 33),
    30: (32, 33),
    31: (32, 33),
    32: (33,),
}
BEST_MODULARITY = 0.4198


def network_of(size, pairs, *, by_strength=False):
    first, second = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
    strengths = np.bincount(np.concatenate((first, second)), minlength=size)
    return Network.build(strengths if by_strength else np.ones(size), first, second, np.ones(len(first)))


def find(network, resolution):
    labels = find_communities(network, resolution, lambda: False)
    assert labels is not None
    return labels


def test_modularity_reaches_the_best_known_value():
    pairs = [(member, friend) for member, friends in KARATE.items() for friend in friends]
    network, total = network_of(34, pairs, by_strength=True), 2 * len(pairs)
    quality = network.measure(find(network, 1 / total), 1 / total)
    assert quality * 2 / total == pytest.approx(BEST_MODULARITY, abs=1e-4)


def test_cliques_with_one_edge_between_neighbors_are_separate_communities():
    """Modularity would merge so many small cliques; the constant Potts model does not."""
    pairs = {pair for clique in range(40) for pair in combinations(range(clique * 5, clique * 5 + 5), 2)}
    pairs |= {(clique * 5 + 4, clique * 5 + 5) for clique in range(39)}
    labels = find(network_of(200, pairs), 0.18)
    assert labels.tolist() == np.unique(labels.reshape(40, 5)[:, :1].repeat(5), return_inverse=True)[1].tolist()
    assert len(set(labels.tolist())) == 40


def test_a_graph_without_edges_has_communities_of_one_node():
    assert sorted(find(network_of(3, []), 0.18).tolist()) == [0, 1, 2]
    assert find(network_of(0, []), 0.18).tolist() == []


graphs = st.integers(2, 14).flatmap(
    lambda size: st.tuples(
        st.just(size), st.sets(st.sampled_from(list(combinations(range(size), 2))), max_size=3 * size)
    )
)


@examples(100)
@given(graphs, st.sampled_from([0.05, 0.18, 0.5]))
def test_no_single_node_gains_by_moving_and_two_runs_agree(graph, resolution):
    network = network_of(*graph)
    labels = find(network, resolution)
    assert (labels == find(network, resolution)).all()
    again = move_nodes(network, labels, resolution, range(len(network)), lambda: False)
    assert network.measure(again, resolution) == pytest.approx(network.measure(labels, resolution))


@examples(100)
@given(graphs)
def test_every_community_is_connected(graph):
    size, pairs = graph
    labels = find(network_of(size, pairs), 0.18).tolist()
    for label in set(labels):
        members = {node for node in range(size) if labels[node] == label}
        reached, todo = set(), [min(members)]
        while todo:
            node = todo.pop()
            reached.add(node)
            todo += [other for pair in pairs if node in pair for other in pair if other in members - reached]
        assert reached == members


def test_a_search_stops_when_it_is_asked_to_pause():
    size = BETWEEN_PAUSES * 2
    network = network_of(size, [(node, node + 1) for node in range(size - 1)])
    asked = []

    def pausing():
        asked.append(True)
        return len(asked) == 3

    assert find_communities(network, 0.18, pausing) is None
    assert len(asked) == 3
