from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.recall import gates
from pipeline.recall.query import Channel, ChannelSignal, Hit, Signals

QUESTION = "Which port does the staging database use?"

share = st.floats(0, 1)


def hit(cosine, coverage):
    channels = {} if cosine is None else {Channel.DENSE: ChannelSignal(1, cosine, 0.1)}
    return Hit(SimpleNamespace(id=f"{cosine}-{coverage}"), 1.0, Signals(channels, 0, 0, 0, 0, coverage))


@given(st.lists(st.tuples(st.none() | share, share)))
def test_what_passes_keeps_its_order(evidence):
    hits = [hit(*pair) for pair in evidence]
    passed = gates.relevant(QUESTION, hits)
    assert [h for h in hits if h in passed] == passed


@given(share, share, share, share)
def test_more_evidence_never_closes_a_gate(cosine, coverage, more_cosine, more_coverage):
    if gates.relevant(QUESTION, [hit(cosine, coverage)]):
        assert gates.relevant(QUESTION, [hit(max(cosine, more_cosine), max(coverage, more_coverage))])


@pytest.mark.parametrize(("cosine", "coverage"), [(1.0, 0.0), (None, 1.0), (0.0, 1.0), (1.0, 1.0)])
def test_strong_evidence_of_one_kind_is_enough(cosine, coverage):
    assert gates.relevant(QUESTION, [hit(cosine, coverage)])


@pytest.mark.parametrize(("cosine", "coverage"), [(0.0, 0.0), (None, 0.0), (-0.2, 0.1)])
def test_no_evidence_is_silence(cosine, coverage):
    assert gates.relevant(QUESTION, [hit(cosine, coverage)]) == []


def test_a_hit_of_a_listing_has_no_evidence():
    assert gates.relevant(QUESTION, [Hit(SimpleNamespace(id="x"), 1.0, None)]) == []


def test_one_shared_word_is_no_evidence_for_a_message_of_one_word():
    assert gates.relevant("thanks!", [hit(0.2, 1.0)]) == []
    assert gates.relevant(QUESTION, [hit(0.2, 1.0)])
