"""Time as a line."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.times import utc_text
from web.dashboard.time_axis import MOST_MARKS, axis_over

moments = st.datetimes(timezones=st.just(UTC)).map(utc_text)


@given(st.lists(moments, min_size=1, max_size=5))
def test_any_moments_have_their_places_in_order(known):
    line = axis_over(known)
    places = [line.position(moment) for moment in sorted(known)]
    assert places == sorted(places)
    assert 0 <= places[0] <= places[-1] <= 100
    marks = line.marks()
    assert len(marks) <= MOST_MARKS + 1
    assert all(0 <= mark.x <= 100 for mark in marks)


@pytest.mark.parametrize(
    ("first", "last", "texts"),
    [
        ("2026-03-01T10:00:00.000Z", "2026-03-01T10:05:00.000Z", [f"1 Mar 10:0{minute}" for minute in range(7)][:7]),
        ("2026-03-01T00:00:00.000Z", "2026-03-05T00:00:00.000Z", [f"{day} Mar 2026" for day in range(1, 6)]),
        ("2026-01-15T00:00:00.000Z", "2026-04-15T00:00:00.000Z", ["Feb 2026", "Mar 2026", "Apr 2026"]),
        ("2020-05-01T00:00:00.000Z", "2024-02-01T00:00:00.000Z", ["2021", "2022", "2023", "2024"]),
    ],
)
def test_marks_are_round(first, last, texts):
    assert [mark.text for mark in axis_over([first, last]).marks()] == texts


def test_a_span_without_an_end_reaches_to_the_edge():
    line = axis_over(["2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z"])
    since, width = line.stretch("2026-01-01T00:00:00.000Z", None)
    assert since + width == pytest.approx(100)
    assert line.stretch(datetime(2025, 1, 1, tzinfo=UTC), "2027-01-01T00:00:00.000Z") == (0, 100)
