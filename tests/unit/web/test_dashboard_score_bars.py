"""Scores as bars, and two orders of results beside each other."""

from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.records.recall import Signals
from pipeline.recall.rank import FEATURES
from web.dashboard import score_bars

NAMES = [feature.name for feature in FEATURES]
parts = st.dictionaries(st.sampled_from(NAMES), st.floats(-0.5, 2.0), max_size=len(NAMES))
explained = st.lists(parts.map(lambda found: Signals({}, found, (), 0.0, 0.0)), min_size=1, max_size=4)


def hits(*ids):
    return [SimpleNamespace(memory=SimpleNamespace(id=identity)) for identity in ids]


@given(explained)
def test_score_bars_fit_their_scale_and_sum_to_the_score(all_signals):
    scale = score_bars.scale_of(all_signals)
    for signals in all_signals:
        bar = score_bars.segments(signals, scale)
        assert all(-1e-6 <= part.x <= part.x + part.width <= 100 + 1e-6 for part in bar)
        assert sum(part.value for part in bar) == pytest.approx(sum(signals.parts.values()), abs=1e-9)
        zero = scale.place(0.0)
        assert all(part.x + part.width <= zero + 1e-6 for part in bar if part.value < 0)
        assert all(part.x >= zero - 1e-6 for part in bar if part.value > 0)


@given(explained)
def test_stretches_of_a_bar_do_not_cover_each_other(all_signals):
    scale = score_bars.scale_of(all_signals)
    for signals in all_signals:
        bar = sorted(score_bars.segments(signals, scale), key=lambda part: (part.x, part.width))
        assert all(one.x + one.width <= other.x + 1e-6 for one, other in pairwise(bar))


def test_moves_show_risen_fallen_new_and_missing_hits():
    moves = score_bars.moves(hits("a", "b", "c", "d"), hits("c", "b", "e", "a"))
    assert {identity: move.sign for identity, move in moves.items()} == {
        "c": "↑2",
        "b": "=",
        "e": "new",
        "a": "↓3",
        "d": "gone",
    }
    assert moves["c"].words == "2 up, from rank 3"
    assert moves["d"].words == "rank 4 in the other list, missing here"
