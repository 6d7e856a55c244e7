from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from pipeline.context.lesson_records import TOLD_FIRST, is_held_out
from pipeline.records import Kind
from pipeline.services.lessons import newcombe_interval
from pipeline.store.impressions import Tally, Trial


def lesson(name, shown=TOLD_FIRST, **details):
    memory = SimpleNamespace(id=name, details=details, kind=Kind.LESSON)
    return SimpleNamespace(memory=memory, tally=Tally(shown=shown))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_the_share_that_is_withheld_is_the_one_asked_for(share):
    drawn = [is_held_out(lesson(f"l{n}"), f"s{n % 50}", share) for n in range(4000)]
    assert abs(sum(drawn) / len(drawn) - share) < 0.03


def test_a_session_is_told_the_same_throughout_and_another_one_otherwise():
    rule = lesson("l")
    drawn = {number: is_held_out(rule, f"s{number}", 0.5) for number in range(64)}
    assert drawn == {number: is_held_out(rule, f"s{number}", 0.5) for number in range(64)}
    assert len(set(drawn.values())) == 2


def test_what_costs_most_and_what_has_no_session_is_never_withheld():
    assert not any(is_held_out(lesson(f"l{n}", severity="critical"), "s", 1.0) for n in range(100))
    assert not is_held_out(lesson("l"), None, 1.0)


def test_what_was_hardly_told_yet_is_told():
    assert not any(is_held_out(lesson(f"l{n}", shown=TOLD_FIRST - 1), "s", 1.0) for n in range(100))


def test_the_interval_is_that_of_the_paper():
    # Newcombe 1998, table II, (a): 56/70 against 48/80, method 10.
    difference, low, high = newcombe_interval(Trial(56, 70), Trial(48, 80))
    assert (round(difference, 4), round(low, 4), round(high, 4)) == (0.2, 0.0524, 0.3339)


@given(st.integers(1, 500), st.integers(1, 500), st.data())
def test_an_interval_holds_its_difference(one, other, data):
    told = Trial(data.draw(st.integers(0, one)), one)
    withheld = Trial(data.draw(st.integers(0, other)), other)
    difference, low, high = newcombe_interval(told, withheld)
    assert -1 - 1e-9 <= low <= difference <= high <= 1 + 1e-9
