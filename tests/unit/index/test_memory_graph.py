import threading

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pipeline.index.memory_graph import (
    DAMPING,
    DAY_WORDS,
    HOPS,
    MOST_HOLDERS,
    Links,
    WordGraphs,
    join_links,
    walk,
    weigh_links,
)
from tests.fakes.properties import opens_stores
from tests.fakes.recall_workspace import open_recall_workspace

MEMORIES = 8


@st.composite
def graphs(draw):
    """Return links with weights, each with the memories that have it."""
    members = st.sets(st.integers(1, MEMORIES), min_size=1, max_size=4)
    return draw(st.lists(st.tuples(members, st.floats(0.1, 5)), max_size=6))


def links_of(graph):
    pairs = [(number, memory) for number, (members, _) in enumerate(graph) for memory in sorted(members)]
    numbers, memories = np.array(pairs, np.int64).reshape(-1, 2).T
    return Links(numbers, memories, np.array([weight for _, weight in graph], np.float32))


def walk_densely(graph, shares):
    """Return what a walk of full matrices visits, by row number."""
    size = MEMORIES + 1
    has = np.zeros((size, len(graph)))
    for number, (members, _) in enumerate(graph):
        has[sorted(members), number] = 1
    out = has * np.array([weight for _, weight in graph]).reshape(1, -1)
    out = out / np.maximum(out.sum(axis=1, keepdims=True), 1e-12)
    back = (has / np.maximum(has.sum(axis=0, keepdims=True), 1)).T
    visits, mass = shares.copy(), shares
    for _ in range(HOPS):
        mass = DAMPING**2 * (mass @ out @ back)
        visits = visits + mass
    return visits


@given(graphs(), st.dictionaries(st.integers(1, MEMORIES), st.floats(0.05, 1), min_size=1, max_size=3))
def test_sparse_graph_walk_equals_the_dense_walk(graph, starts):
    shares = np.zeros(MEMORIES + 1)
    for memory, share in starts.items():
        shares[memory] = share
    seqs = np.array(sorted(starts))
    visited = walk(lambda _memories: links_of(graph), seqs, shares[seqs])
    by_row = np.zeros(MEMORIES + 1)
    by_row[visited.memories] = visited.mass.sum(axis=0)
    assert by_row == pytest.approx(walk_densely(graph, shares), abs=1e-5)
    assert by_row.sum() <= shares.sum() * (1 + DAMPING**2 + DAMPING**4) + 1e-6


def test_graph_walk_reports_the_start_of_each_visit():
    links = links_of([({1, 3}, 1.0), ({2, 4}, 1.0)])
    visited = walk(lambda _memories: links, np.array([1, 2]), np.array([0.5, 0.5]), hops=1)
    assert visited.memories.tolist() == [1, 2, 3, 4]
    assert (visited.mass > 0).tolist() == [[True, False, True, False], [False, True, False, True]]


def test_each_hop_continues_from_the_most_visited_memories_only():
    asked = []

    def find(memories):
        asked.append(memories.tolist())
        return links_of([({1, 2, 3}, 1.0), ({1, 2}, 9.0)])

    walk(find, np.array([1]), np.array([1.0]), limit=2)
    assert asked == [[1], [1, 2]]


def test_names_of_a_single_or_too_many_memories_are_no_links():
    many = list(range(1, MOST_HOLDERS + 2))
    numbers = np.array([0, 1, 1, *[2] * len(many)])
    links = weigh_links(numbers, np.array([1, 1, 2, *many]), 3, count=100)
    assert (links.numbers.tolist(), links.memories.tolist()) == ([1, 1], [1, 2])
    assert (links.weights > 0).tolist() == [False, True, False]


def test_joined_links_stay_apart():
    joined = join_links([links_of([({1, 2}, 1.0)]), links_of([]), links_of([({3, 4}, 2.0)])])
    assert joined.numbers.tolist() == [0, 0, 1, 1]
    assert joined.weights[joined.numbers].tolist() == [1, 1, 2, 2]


WORDS = ("ledger-db", "pine", "kelp", "burrow", "Tuesday", "31")


def shared_pairs(workspace, excluded=()):
    """Return the linked pairs of texts, as the graph finds them for all memories at once."""
    with workspace.database.read() as db:
        corpus = workspace.reader.lexical.refresh(db)
        workspace.reader.ranking_features.refresh(db)
        contents = dict(db.execute("SELECT seq, content FROM memory").fetchall())
    graph = WordGraphs().of(corpus)
    visible = workspace.reader.ranking_features.visible
    links = graph.find_links(np.array(sorted(contents)), graph.list_numbers(excluded), visible)
    groups = {}
    for number, memory in zip(links.numbers.tolist(), links.memories.tolist(), strict=True):
        groups.setdefault(number, set()).add(memory)
    return {frozenset((a, b)) for group in groups.values() for a in group for b in group if a < b}, contents


@opens_stores
@given(st.lists(st.sets(st.sampled_from(WORDS), min_size=1), min_size=1, max_size=6), st.integers(0, 6))
def test_memories_are_linked_by_their_common_words_in_segment_and_tail(word_sets, folded):
    with open_recall_workspace() as workspace:
        for number, words in enumerate(word_sets):
            workspace.write(f"note{number}x {' '.join(sorted(words))}")
            if number + 1 == folded:
                workspace.fold()
        pairs, contents = shared_pairs(workspace)
    names = {seq: set(content.split()[1:]) - {"Tuesday", "31"} for seq, content in contents.items()}
    assert pairs == {frozenset((a, b)) for a in names for b in names if a < b and names[a] & names[b]}


def test_the_words_of_a_question_are_no_links():
    with open_recall_workspace() as workspace:
        workspace.write("zebra giraffe one")
        workspace.write("zebra giraffe two")
        pairs, _ = shared_pairs(workspace, ["zebra"])
        assert len(pairs) == 1
        assert shared_pairs(workspace, ["zebra", "giraff"]) == (set(), shared_pairs(workspace)[1])


def test_the_day_of_a_memory_is_in_the_index_and_links_nothing():
    assert {"tuesday", "march", "29", "2026"} <= DAY_WORDS
    with open_recall_workspace() as workspace:
        for word in ("zebra", "giraffe"):
            workspace.write(word, occurred_at="2026-03-29T10:00:00Z")
        assert shared_pairs(workspace)[0] == set()


def test_threads_share_one_graph_of_a_corpus():
    with open_recall_workspace() as workspace:
        workspace.write("zebra")
        with workspace.database.read() as db:
            corpus = workspace.reader.lexical.refresh(db)
    graphs, found = WordGraphs(), []
    threads = [threading.Thread(target=lambda: found.append(graphs.of(corpus))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(graph) for graph in found}) == 1
