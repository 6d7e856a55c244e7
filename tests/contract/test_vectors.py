"""One table of passages, three ways to search it: in memory, by LanceDB, and one dot product at a time."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.index.vectors import DenseIndex, VectorTable
from tests.fakes.house import scratch_folder

DIMENSION = 8


@dataclass
class PlainVectors:
    """What the table must hold, as a dictionary."""

    passages: dict

    def search(self, query):
        return {seq: float((rows @ query).max()) for seq, rows in self.passages.items()}


class Trio:
    """A LanceDB table, both ways of searching it, and the plain model."""

    def __init__(self, folder):
        self.table = VectorTable(folder / "vectors.lance", "model", DIMENSION)
        self.in_memory = DenseIndex(self.table, exact_rows=10_000)
        self.by_lance = DenseIndex(self.table, exact_rows=0)
        self.plain = PlainVectors({})
        self.generation = (0, 0)

    def replace(self, vectors):
        epoch, stamp = self.generation
        with self.table.exclusive():
            self.table.replace(vectors, stamp + 1)
        self.generation = (epoch, stamp + 1)
        self.plain.passages |= vectors

    def remove(self, seqs):
        with self.table.exclusive():
            self.table.remove(seqs)
        self.generation = (self.generation[0] + 1, self.generation[1])
        for seq in seqs:
            self.plain.passages.pop(seq, None)

    def agree(self, query, limit=50):
        expected = self.plain.search(query)
        best = sorted(expected.items(), key=lambda pair: -pair[1])[:limit]
        for index in (self.in_memory, self.by_lance):
            found = index.search(query, self.generation, limit=200).top(limit)
            assert [cosine for _, cosine in found] == pytest.approx([cosine for _, cosine in best], abs=1e-5)
            for seq, cosine in found:
                assert cosine == pytest.approx(expected[seq], abs=1e-5)


def unit(*values):
    vector = np.zeros(DIMENSION, np.float32)
    vector[: len(values)] = values
    return vector / np.linalg.norm(vector)


def passages(seed, count):
    rows = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def trio(tmp_path):
    return Trio(tmp_path)


batches = st.dictionaries(
    st.integers(1, 12),
    st.tuples(st.integers(0, 99), st.integers(1, 3)).map(lambda p: passages(*p)),
    min_size=1,
    max_size=5,
)
steps = st.lists(st.one_of(batches, st.lists(st.integers(1, 12), max_size=4)), min_size=1, max_size=5)


@settings(max_examples=12)
@given(steps, st.integers(100, 199))
def test_all_three_agree_after_any_history(history, seed):
    with scratch_folder() as folder:
        trio = Trio(folder)
        for step in history:
            trio.replace(step) if isinstance(step, dict) else trio.remove(step)
            trio.agree(passages(seed, 1)[0])
        assert trio.table.seqs() == set(trio.plain.passages)
        assert trio.table.count() == sum(len(rows) for rows in trio.plain.passages.values())


def test_replacing_twice_is_replacing_once(trio):
    trio.replace({1: passages(1, 3), 2: passages(2, 1)})
    trio.replace({1: passages(1, 3), 2: passages(2, 1)})
    assert trio.table.count() == 4
    trio.replace({1: passages(3, 1)})
    assert trio.table.count() == 2
    trio.agree(unit(1, 2, 3))


def test_a_memory_scores_by_its_best_passage(trio):
    trio.replace({1: np.array([unit(1), unit(0, 1)]), 2: np.array([unit(1, 1)])})
    for index in (trio.in_memory, trio.by_lance):
        scores = index.search(unit(0, 1), trio.generation, limit=10)
        assert [seq for seq, _ in scores.top(5)] == [1, 2]
        assert scores.of([1, 2, 3]) == [pytest.approx(1.0), pytest.approx(0.5**0.5), None]


def test_what_was_removed_is_not_found(trio):
    trio.replace({1: passages(1, 1), 2: passages(2, 1)})
    trio.agree(unit(1))
    trio.remove([1])
    trio.agree(unit(1))
    trio.remove([2])
    trio.agree(unit(1))


def test_an_index_follows_the_writes_of_others(trio):
    trio.replace({1: passages(1, 1)})
    trio.agree(unit(1))
    other = VectorTable(trio.table._folder, "model", DIMENSION)
    with other.exclusive():
        other.replace({5: passages(5, 2)}, stamp=2)
    trio.plain.passages[5] = passages(5, 2)
    trio.generation = (0, 2)
    trio.agree(unit(1))


def test_an_empty_table_answers_nothing(trio):
    for index in (trio.in_memory, trio.by_lance):
        assert index.search(unit(1), (0, 0), limit=5).top(5) == []
    assert (trio.table.exists(), trio.table.count(), trio.table.seqs(), trio.table.fragments()) == (False, 0, set(), 0)


@pytest.mark.parametrize(
    "only",
    [
        [2, 3],
        [3],
        [99],
        [],
    ],
)
def test_a_choice_of_memories_is_made_before_the_limit(trio, only):
    trio.replace({1: np.array([unit(1)]), 2: np.array([unit(1, 1)]), 3: np.array([unit(0, 1)])})
    for index in (trio.in_memory, trio.by_lance):
        found = index.search(unit(1), trio.generation, limit=2, only=only).top(2, np.array(only, np.int64))
        assert [seq for seq, _ in found] == [seq for seq in only if seq in (2, 3)]


@pytest.mark.parametrize("tidy", ["compact", "scrub"])
def test_tidying_changes_no_answer(trio, tidy):
    for number in range(1, 6):
        trio.replace({number: passages(number, 2)})
    trio.remove([3])
    trio.agree(unit(1, 2))
    with trio.table.exclusive():
        getattr(trio.table, tidy)()
    assert trio.table.fragments() <= 2
    trio.agree(unit(1, 2))
    # Whoever opened the table before still finds it.
    trio.replace({7: passages(7, 1)})
    trio.agree(unit(1, 2))


def test_a_table_that_was_dropped_is_empty_and_can_be_filled_again(trio):
    trio.replace({1: passages(1, 1)})
    with trio.table.exclusive():
        trio.table.drop()
    trio.plain.passages.clear()
    trio.generation = (1, 1)
    trio.agree(unit(1))
    trio.replace({2: passages(2, 1)})
    trio.agree(unit(1))


def test_ties_go_to_the_older_memory_also_at_the_limit(trio):
    trio.replace({seq: np.array([unit(1)]) for seq in range(1, 30)})
    scores = trio.in_memory.search(unit(1), trio.generation, limit=100)
    assert [seq for seq, _ in scores.top(5)] == [1, 2, 3, 4, 5]
