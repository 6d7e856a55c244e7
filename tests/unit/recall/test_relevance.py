import pytest
from hypothesis import given, strategies as st

from pipeline.recall.rank import RELEVANT, rank, relevance
from tests.fakes.evidence import evidence


@given(st.lists(st.tuples(st.floats(-1, 1, width=32), st.floats(0, 1, width=32)), max_size=6))
def test_a_probability_is_one_whatever_the_evidence(pairs):
    dense, words = [d for d, _ in pairs], [w for _, w in pairs]
    found = relevance(rank(evidence(range(1, len(pairs) + 1), dense=dense, lexical=words, ceiling=1.0)))
    assert len(found) == len(pairs)
    assert all(0 <= probability <= 1 for probability in found.tolist())


@pytest.mark.parametrize("ceiling", [0.0, 5.0])
def test_no_evidence_is_silence(ceiling):
    found = relevance(rank(evidence([1, 2], dense=[0.0, -0.3], ceiling=ceiling)))
    assert (found < RELEVANT).all()
