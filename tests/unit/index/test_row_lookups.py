"""Lookups by row number give what a dictionary gives."""

import numpy as np
from hypothesis import given, strategies as st

from pipeline.index.encoders import QueryVectors
from pipeline.index.row_arrays import flag_members, look_up, merge_rows, values_at
from tests.fakes.encoder import HashEncoder

ROWS = st.sets(st.integers(1, 40), max_size=12).map(sorted)


@given(ROWS, st.dictionaries(st.integers(0, 45), st.integers(1, 99), max_size=12))
def test_values_are_found_by_row_number(rows, values):
    seqs = np.array(rows, np.int64)
    assert look_up(values, seqs, np.int64).tolist() == [values.get(row, 0) for row in rows]
    assert flag_members(seqs, list(values)).tolist() == [row in values for row in rows]


@given(st.lists(st.integers(0, 40)), st.integers(0, 30))
def test_there_is_no_value_beyond_the_end(rows, size):
    values = np.arange(1, size + 1)
    assert values_at(values, np.array(rows, np.int64)).tolist() == [row + 1 if row < size else 0 for row in rows]


def test_a_query_is_encoded_once_and_its_vector_is_shared(monkeypatch):
    inner, texts = HashEncoder(), []
    encode = inner.encode_query
    monkeypatch.setattr(inner, "encode_query", lambda text: texts.append(text) or encode(text))
    encoder = QueryVectors(inner)
    vectors = [encoder.encode_query(text) for text in ("a cat", "a dog", "a cat")]
    assert texts == ["a cat", "a dog"]
    assert vectors[0] is vectors[2]
    assert not vectors[0].flags.writeable
    assert np.array_equal(vectors[0], encode("a cat"))


@given(st.lists(st.lists(st.integers(0, 30))))
def test_merged_rows_are_different_and_ascend(parts):
    merged = merge_rows([np.array(part, np.int64) for part in parts])
    assert merged.tolist() == sorted({row for part in parts for row in part})
