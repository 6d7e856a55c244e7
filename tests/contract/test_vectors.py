"""One table of passages, in a folder and on object storage, and three ways to search it.

In memory, by LanceDB, and one dot product at a time.
"""

import uuid
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pipeline.index.codes import CodesFile
from pipeline.index.dense import NEIGHBOUR_SHARE, DenseIndex
from pipeline.index.table_storage import SharedTables
from pipeline.index.vectors import VectorTable
from pipeline.kernel.store.leases import hold
from pipeline.kernel.store.objects import ObjectStorage
from pipeline.kernel.store.sqlite import SqliteDatabase
from tests.fakes.in_process import PROFILE, scratch_folder

DIMENSION = 8
NO_BACKGROUND = np.empty((0, DIMENSION), np.float32)
# What eight bits a dimension may bend a cosine by.
CLOSE = 0.01


class Trio:
    """A LanceDB table, both ways of searching it, and what it must hold as a dictionary."""

    def __init__(self, folder, open_table):
        self.open_table = partial(open_table, folder)
        self.table = self.open_table()
        self.in_memory = DenseIndex(self.table, 10_000, NO_BACKGROUND)
        self.by_lance = DenseIndex(self.table, 0, NO_BACKGROUND)
        # What answers as long as the codes are lost.
        alone = self.open_table()
        alone._codes = CodesFile(folder / "lost.codes", DIMENSION)
        self.without_codes = DenseIndex(alone, 10_000, NO_BACKGROUND)
        self.indexes = (self.in_memory, self.by_lance, self.without_codes)
        self.passages = {}
        self.generation = (0, 0)

    def replace(self, vectors):
        epoch, stamp = self.generation
        with self.table.exclusive():
            self.table.replace(vectors)
        self.advance(epoch, stamp + 1)
        self.passages |= vectors

    def remove(self, seqs):
        with self.table.exclusive():
            self.table.remove(seqs)
        self.advance(self.generation[0] + 1, self.generation[1])
        for seq in seqs:
            self.passages.pop(seq, None)

    def advance(self, epoch, stamp):
        """Move on, and wait for the index in memory as long as that takes."""
        self.generation = (epoch, stamp)
        self.in_memory.refresh(self.generation)
        self.without_codes.refresh(self.generation)

    def search(self, index, query, limit=200, only=None):
        return index.search(query, self.generation, limit, only)

    def agree(self, query):
        expected = {seq: float((rows @ query).max()) for seq, rows in self.passages.items()}
        positive = sorted((cosine for cosine in expected.values() if cosine > CLOSE), reverse=True)
        for index in self.indexes:
            found = self.search(index, query)
            top = found.top(50)
            assert set(top.tolist()) <= set(expected)
            cosines = found.of(top)
            assert (np.diff(cosines) <= 0).all()
            assert cosines == pytest.approx([expected[seq] for seq in top.tolist()], abs=CLOSE)
            assert cosines[: len(positive)] == pytest.approx(positive, abs=CLOSE)

    def agree_in_context(self, query, seqs, before, after):
        def first(seq):
            return self.passages[seq][0] if seq in self.passages else np.zeros(DIMENSION)

        for index in self.indexes:
            found = self.search(index, query).in_context(*(np.array(s, np.int64) for s in (seqs, before, after)))
            for cosine, triple in zip(found, zip(seqs, before, after, strict=True), strict=True):
                own, previous, following = map(first, triple)
                context = own + NEIGHBOUR_SHARE * (previous + following)
                # Vectors that nearly cancel each other out point anywhere.
                if (length := np.linalg.norm(context)) > 0.2:
                    assert cosine == pytest.approx(context @ query / length, abs=5 * CLOSE)
                elif length == 0:
                    assert cosine == 0


def unit(*values):
    vector = np.zeros(DIMENSION, np.float32)
    vector[: len(values)] = values
    return vector / np.linalg.norm(vector)


def passages(seed, count):
    rows = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def open_in_folder(folder):
    return VectorTable(folder / "vectors.lance", "model", DIMENSION)


@pytest.fixture(scope="module", params=["folder", "s3"])
def open_table(request):
    """Return what opens the table of a folder, which on object storage only holds copies."""
    if request.param == "folder":
        yield open_in_folder
        return
    server = request.getfixturevalue("s3")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        storage, prefixes, databases = ObjectStorage.open("s3://vectors/team"), {}, {}
        server.make_bucket("vectors")

        def open_shared(folder):
            below = storage.below(prefixes.setdefault(folder, uuid.uuid4().hex))
            if folder not in databases:
                databases[folder] = SqliteDatabase(folder / "events.sqlite", PROFILE, create=True)
            place = SharedTables(below, folder / "vectors.lance", partial(hold, databases[folder], "vectors"))
            return VectorTable(folder / "vectors.lance", "model", DIMENSION, place)

        yield open_shared
        for database in databases.values():
            database.close()


@pytest.fixture
def trio(tmp_path, open_table):
    return Trio(tmp_path, open_table)


numbers = st.integers(1, 12)
batches = st.dictionaries(
    numbers,
    st.tuples(st.integers(0, 99), st.integers(1, 3)).map(lambda p: passages(*p)),
    min_size=1,
    max_size=5,
)
steps = st.lists(st.one_of(batches, st.lists(numbers, max_size=4)), min_size=1, max_size=5)
triples = st.lists(st.tuples(*[st.integers(0, 14)] * 3), min_size=1, max_size=6)


@settings(max_examples=12)
@given(steps, st.integers(100, 199), triples)
def test_all_three_agree_after_any_history(open_table, history, seed, neighbours):
    with scratch_folder() as folder:
        trio, query = Trio(folder, open_table), passages(seed, 1)[0]
        for step in history:
            trio.replace(step) if isinstance(step, dict) else trio.remove(step)
            trio.agree(query)
        trio.agree_in_context(query, *zip(*neighbours, strict=True))
        assert trio.table.seqs() == set(trio.passages)
        assert trio.table.count() == sum(len(rows) for rows in trio.passages.values())


def test_replacing_twice_is_replacing_once(trio):
    trio.replace({1: passages(1, 3), 2: passages(2, 1)})
    trio.replace({1: passages(1, 3), 2: passages(2, 1)})
    assert trio.table.count() == 4
    trio.replace({1: passages(3, 1)})
    assert trio.table.count() == 2
    trio.agree(unit(1, 2, 3))


def test_memory_scores_by_best_passage_and_is_compared_by_first_passage(trio):
    trio.replace({1: np.array([unit(1), unit(0, 1)]), 2: np.array([unit(1, 1)])})
    for index in trio.indexes:
        found = trio.search(index, unit(0, 1))
        assert found.top(5).tolist() == [1, 2]
        assert found.of(np.array([1, 2, 3])) == pytest.approx([1.0, 0.5**0.5, 0.0], abs=CLOSE)
        first = found.vectors.first_passages(np.array([3, 1, 1, 0]))
        assert first == pytest.approx(np.array([0 * unit(1), unit(1), unit(1), 0 * unit(1)]), abs=CLOSE)


def test_removed_vectors_are_not_found(trio):
    trio.replace({1: passages(1, 1), 2: passages(2, 1)})
    trio.agree(unit(1))
    for seq in (1, 2):
        trio.remove([seq])
        trio.agree(unit(1))
        trio.agree_in_context(unit(1), [1, 2], [2, 1], [0, 0])


def test_an_index_follows_the_writes_of_others(trio):
    trio.replace({1: passages(1, 1)})
    trio.agree(unit(1))
    other = trio.open_table()
    with other.exclusive():
        other.replace({5: passages(5, 2)})
    trio.passages[5] = passages(5, 2)
    trio.advance(0, 2)
    trio.agree(unit(1))


def test_an_empty_table_answers_nothing(trio):
    for index in trio.indexes:
        found = index.search(unit(1), (0, 0), limit=5)
        assert found.top(5).tolist() == []
        assert found.of(np.array([1])).tolist() == [0]
        assert found.in_context(*[np.array([1, 2])] * 3).tolist() == [0, 0]
        assert found.in_context(*[np.empty(0, np.int64)] * 3).tolist() == []
    assert (trio.table.exists(), trio.table.count(), trio.table.seqs(), trio.table.fragments()) == (False, 0, set(), 0)


@pytest.mark.parametrize("only", [[2, 3], [3], [99], []])
def test_a_choice_of_memories_is_made_before_the_limit(trio, only):
    trio.replace({1: np.array([unit(1)]), 2: np.array([unit(1, 1)]), 3: np.array([unit(1, 2)])})
    allowed = np.zeros(4, np.bool_)
    allowed[[seq for seq in only if seq < 4]] = True
    for index in trio.indexes:
        found = trio.search(index, unit(1), limit=2, only=only).top(2, allowed)
        assert found.tolist() == [seq for seq in only if seq in (2, 3)]


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
    trio.passages.clear()
    trio.advance(1, 1)
    trio.agree(unit(1))
    trio.replace({2: passages(2, 1)})
    trio.agree(unit(1))


def test_ties_go_to_the_older_memory_also_at_the_limit(trio):
    trio.replace({seq: np.array([unit(1)]) for seq in range(1, 30)})
    for index in trio.indexes:
        assert trio.search(index, unit(1)).top(5).tolist() == [1, 2, 3, 4, 5]


def test_an_index_of_many_partitions_leaves_out_no_allowed_memory(tmp_path):
    """An index of LanceDB probes 20 partitions, which need not contain the allowed passages, and may omit zeros."""
    from lancedb.index import IvfFlat

    chosen = np.random.default_rng(7)
    matrix = chosen.normal(size=(4000, DIMENSION)).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix[:5] = 0
    table = VectorTable(tmp_path / "many", "model", DIMENSION)
    with table.exclusive():
        table.replace({seq: matrix[seq : seq + 1] for seq in range(len(matrix))})
    table._open().create_index("vector", config=IvfFlat(distance_type="dot", num_partitions=128))
    for query in matrix[:20]:
        only = [0, *chosen.choice(np.arange(1, len(matrix)), 9, replace=False).tolist()]
        assert sorted(seq for seq, _ in table.nearest(query, 10, only)) == sorted(only)
