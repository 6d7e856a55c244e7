"""Vectors in memory: eight bits a dimension, taken in while searches go on."""

import threading
from dataclasses import replace

import numkong
import numpy as np
import pytest
from hypothesis import given, strategies as st

from pipeline.index.codes import PassageCodes, StoredCodes
from pipeline.index.dense import ContextLengths, DenseIndex
from pipeline.kernel.errors import IndexUnavailable
from tests.fakes.properties import examples

LONG = 60.0
DIMENSION = 16
NO_BACKGROUND = np.empty((0, DIMENSION), np.float32)


def units(seed, count, dimension=DIMENSION):
    rows = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_products_of_codes_are_exact_beyond_any_dimension():
    codes = np.array([[127], [-127], [0]], np.int8).repeat(16_384, axis=1)
    assert numkong.cdist(codes, codes, metric="dot") == pytest.approx(codes.astype(np.int64) @ codes.T)


class FakeTable:
    """A table in a list, whose reading can be held up or made to fail."""

    dimension = DIMENSION

    def __init__(self):
        self.rows = []
        self.codes = []
        self.reads = []
        self.failure = None
        self.has_file = True
        self.reading = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def add(self, stamp, seq, vector):
        self.rows = [row for row in self.rows if row[1] != seq] + [(stamp, seq, vector)]

    def has_codes(self):
        return self.has_file

    def read_codes(self, position, most):
        self.reads.append(position)
        self.reading.set()
        assert self.go_on.wait(LONG)
        if self.failure is not None:
            raise self.failure
        newer = [row for row in self.rows if position is None or row[0] > position]
        matrix = np.array([vector for *_, vector in newer], np.float32).reshape(-1, DIMENSION)
        rows = PassageCodes.of(np.array([seq for _, seq, _ in newer], np.int64), matrix)
        end = max((stamp for stamp, *_ in self.rows), default=0)
        end = end if self.has_file else None
        self.codes = [*([] if position is None else self.codes), rows.codes]
        stored = StoredCodes(np.concatenate(self.codes))
        rows = replace(rows, position=end, continues=position is not None, stored=stored)
        return None if len(self.rows) > most else rows


QUERY = units(0, 1)[0]


@pytest.fixture
def table():
    table = FakeTable()
    table.add(1, 1, QUERY)
    yield table
    table.go_on.set()


@pytest.fixture
def index(table):
    index = DenseIndex(table, 1000, NO_BACKGROUND)
    yield index
    table.go_on.set()
    index.close()


def search_rows(index, generation):
    return index.search(QUERY, generation, 10).top(10).tolist()


@examples(60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 8, 64, 384]), st.integers(1, 40))
def test_eight_bits_bend_no_cosine_by_a_hundredth(seed, dimension, count):
    rows, query = units(seed, count, dimension), units(seed + 1, 1, dimension)[0]
    table = FakeTable()
    table.read_codes = lambda *_: PassageCodes.of(np.arange(1, count + 1), rows)
    index = DenseIndex(table, 1000, np.empty((0, dimension), np.float32))
    cosines = index.search(query, (0, 1), count).of(np.arange(1, count + 1))
    index.close()
    assert cosines == pytest.approx(rows @ query, abs=0.01)


def test_a_vector_of_one_dimension_alone_is_kept(index, table):
    table.add(1, 2, np.eye(DIMENSION, dtype=np.float32)[3])
    scores = index.search(np.eye(DIMENSION, dtype=np.float32)[3], (0, 1), 10)
    assert scores.of(np.array([2]))[0] == pytest.approx(1, abs=1e-3)


def test_a_generation_is_read_once(index, table):
    for generation in ((0, 1), (0, 1), (0, 2), (1, 2), (1, 2)):
        index.refresh(generation)
        search_rows(index, generation)
    assert table.reads == [None, 1, None]


def test_an_older_generation_takes_nothing_back(index, table):
    index.refresh((1, 2))
    for older in ((0, 9), (1, 1)):
        scores = index.search(QUERY, older, 10)
        assert (scores.top(9).tolist(), scores.settled) == ([1], True)
    assert table.reads == [None]


def test_a_search_does_not_wait_for_vectors_that_are_slow_to_come(index, table):
    assert search_rows(index, (0, 1)) == [1]
    table.add(2, 2, QUERY)
    table.go_on.clear()
    for _ in range(2):
        scores = index.search(QUERY, (0, 2), 10)
        assert scores.top(10).tolist() == [1]
        assert not scores.settled
    table.go_on.set()
    index.refresh((0, 2))
    scores = index.search(QUERY, (0, 2), 10)
    assert (scores.top(10).tolist(), scores.settled) == ([1, 2], True)


def test_vectors_that_come_quickly_are_in_the_same_answer(index, table, monkeypatch):
    monkeypatch.setattr("pipeline.index.dense.PATIENCE_S", LONG)
    assert search_rows(index, (0, 1)) == [1]
    for stamp in range(2, 6):
        table.add(stamp, stamp, QUERY)
        scores = index.search(QUERY, (0, stamp), 10)
        assert (scores.top(10).tolist(), scores.settled) == (list(range(1, stamp + 1)), True)


def test_removed_vectors_are_gone_before_a_search_answers(index, table):
    """A purge is not a matter of patience."""
    table.add(1, 2, QUERY)
    assert search_rows(index, (0, 1)) == [1, 2]
    table.rows = table.rows[:1]
    assert search_rows(index, (1, 1)) == [1]


def test_fast_table_failure_is_raised_and_the_next_search_retries(index, table, monkeypatch):
    monkeypatch.setattr("pipeline.index.dense.PATIENCE_S", LONG)
    assert search_rows(index, (0, 1)) == [1]
    table.failure = IndexUnavailable("cut")
    for _ in range(2):
        with pytest.raises(IndexUnavailable):
            search_rows(index, (0, 2))
    table.failure = None
    assert search_rows(index, (0, 2)) == [1]


def test_table_failure_after_a_search_is_raised_by_the_next_search(index, table):
    assert search_rows(index, (0, 1)) == [1]
    table.failure = IndexUnavailable("cut")
    table.go_on.clear()
    assert search_rows(index, (0, 2)) == [1]
    table.go_on.set()
    with pytest.raises(IndexUnavailable):
        index._refreshing.result(LONG)
    with pytest.raises(IndexUnavailable):
        search_rows(index, (0, 2))


def test_failed_first_read_is_raised(index, table):
    table.failure = IndexUnavailable("gone")
    with pytest.raises(IndexUnavailable):
        search_rows(index, (0, 1))


def test_closeness_is_calibrated_for_any_encoder(table):
    # An encoder that gives any two texts a cosine near 0.8.
    crowd = units(3, 400) * 0.5 + np.eye(DIMENSION, dtype=np.float32)[0]
    crowd /= np.linalg.norm(crowd, axis=1, keepdims=True)
    index = DenseIndex(table, 1000, crowd[:200])
    scores = index.search(crowd[300], (0, 1), 10)
    index.close()
    cosines = crowd[201:300] @ crowd[300]
    assert cosines.min() > 0.5
    assert scores.closeness(cosines).mean() == pytest.approx(0, abs=0.15)
    assert scores.closeness(np.ones(1, np.float32)) == pytest.approx([1])
    assert scores.background_similarity == pytest.approx(scores.closeness((crowd[:200] @ crowd[300]).max()), abs=1e-5)


class CountedVectors:
    """Gives vectors by row number and notes of whom."""

    def __init__(self, rows):
        self.rows = rows
        self.asked = []

    def first_passages(self, seqs):
        self.asked.append(set(seqs.tolist()))
        return np.array([self.rows.get(seq, np.zeros(DIMENSION, np.float32)) for seq in seqs.tolist()], np.float32)


def test_lengths_of_contexts_stay_known_where_no_vector_in_them_changed():
    vectors = CountedVectors(dict(enumerate(units(5, 12), 1)))
    seqs, before, after = np.arange(2, 10), np.arange(1, 9), np.arange(3, 11)
    lengths = ContextLengths(13)
    known = lengths.of(vectors, seqs, before, after)
    vectors.rows[5] = vectors.rows[5] * 3
    vectors.asked.clear()
    changed = lengths.without(np.array([5]), 20)
    found = changed.of(vectors, seqs, before, after)
    # 5 and those beside it, and what stands beside those.
    assert vectors.asked == [{3, 4, 5, 6, 7}]
    assert (found != known).nonzero()[0].tolist() == [2, 3, 4]
    np.testing.assert_array_equal(found, ContextLengths(13).of(vectors, seqs, before, after))


def test_lost_code_file_is_reported_while_vectors_are_still_found(table):
    told = []
    index = DenseIndex(table, 100, NO_BACKGROUND, told.append)
    assert index.search(QUERY, (0, 1), 5).by_row[1] == pytest.approx(1)
    assert told == []
    table.has_file = False
    assert index.search(QUERY, (0, 1), 5).by_row[1] == pytest.approx(1)
    # Who has to read meanwhile gets them from the table.
    fresh = DenseIndex(table, 100, NO_BACKGROUND, told.append)
    assert fresh.search(QUERY, (0, 1), 5).by_row[1] == pytest.approx(1)
    table.has_file = True
    fresh.search(QUERY, (0, 1), 5)
    assert [type(error) for error in told] == [IndexUnavailable] * 3


def test_where_nothing_was_embedded_yet_nothing_is_lost(table):
    told = []
    table.rows, table.has_file = [], False
    DenseIndex(table, 100, NO_BACKGROUND, told.append).search(QUERY, (0, 0), 5)
    assert told == []
