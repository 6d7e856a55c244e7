"""Times as text, and as ages that a reader understands at once."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.times import (
    age,
    due_age,
    format_due,
    local_date,
    local_day_end,
    local_day_start,
    local_minute,
    local_second,
    normalize_local_time,
    normalize_time,
    normalize_typed_time,
    utc_text,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
moments = st.datetimes(timezones=st.just(UTC))


@pytest.mark.parametrize(
    ("past", "said"),
    [
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=1), "1 min ago"),
        (timedelta(minutes=59, seconds=59), "59 min ago"),
        (timedelta(hours=1), "1 h ago"),
        (timedelta(hours=3, minutes=50), "3 h ago"),
        (timedelta(hours=23, minutes=59), "23 h ago"),
        (timedelta(days=1), "1 day ago"),
        (timedelta(days=2), "2 days ago"),
        (timedelta(days=60), "60 days ago"),
        (timedelta(days=61), "2 months ago"),
        (timedelta(days=155), "5 months ago"),
        (timedelta(days=729), "23 months ago"),
        (timedelta(days=731), "2 years ago"),
        (timedelta(days=3653), "10 years ago"),
        (timedelta(seconds=-30), "just now"),
        (timedelta(minutes=-90), "in 1 h"),
        (timedelta(days=-5), "in 5 days"),
    ],
)
def test_an_age_is_said_as_one_would(past, said):
    assert age(utc_text(NOW - past), NOW) == said


@given(moments, moments)
def test_any_two_moments_have_a_short_age_that_turns_round_with_them(one, other):
    ahead, behind = age(utc_text(one), other), age(utc_text(other), one)
    assert len(ahead) <= len("9998 years ago")
    if not {ahead, behind} & {"just now"} and one.microsecond == other.microsecond == 0:
        assert {ahead.removeprefix("in ").removesuffix(" ago")} == {behind.removeprefix("in ").removesuffix(" ago")}


@given(st.datetimes(timezones=st.timezones()).filter(lambda moment: 2 < moment.year < 9998))
def test_rendered_time_is_parsed_as_the_same_time(moment):
    offset = moment.utcoffset()
    if offset % timedelta(minutes=1):
        return
    assert normalize_time(moment.isoformat()) == utc_text(moment) == normalize_time(utc_text(moment))


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("2026-03-01", "2026-03-01T00:00:00.000Z"),
        ("2026-03-01T12:30", "2026-03-01T12:30:00.000Z"),
        ("2026-03-01 12:30:05.5", "2026-03-01T12:30:05.500Z"),
        ("2026-03-01T12:30:05+01:00", "2026-03-01T11:30:05.000Z"),
    ],
)
def test_a_typed_time_without_an_offset_is_in_utc(typed, read):
    assert normalize_typed_time(typed) == read


@pytest.mark.parametrize(
    "typed", ["2030", "20300101", "2026-W05-6", "1767225600", "2026-02-30", "noon", "2026-03-01T25:00"]
)
def test_a_typed_number_is_no_time(typed):
    with pytest.raises(ValueError, match="must be"):
        normalize_typed_time(typed)


@pytest.mark.usefixtures("central_europe")
def test_stored_times_are_shown_in_the_local_time_zone():
    assert local_minute("2026-07-01T22:30:00.000Z") == "2026-07-02T00:30"
    assert local_second("2026-01-01T22:30:05.000Z") == "2026-01-01T23:30:05"
    assert local_date("2026-12-31T23:30:00.000Z") == "2027-01-01"
    assert local_date("9999-12-31T23:59:59.999Z") == "9999-12-31Z"


@pytest.mark.usefixtures("central_europe")
def test_a_local_day_starts_and_ends_in_the_local_time_zone():
    # The clocks change on this day.
    day = date(2026, 3, 29)
    assert utc_text(local_day_start(day)) == "2026-03-28T23:00:00.000Z"
    assert utc_text(local_day_end(day)) == "2026-03-29T21:59:59.999Z"
    assert normalize_local_time("2026-03-29T12:00") == "2026-03-29T10:00:00.000Z"
    assert normalize_local_time("2026-03-29T12:00:00Z") == "2026-03-29T12:00:00.000Z"


@pytest.mark.usefixtures("far_zone")
def test_a_goal_that_is_due_on_a_day_is_due_at_its_end():
    assert format_due("2026-11-29T00:00:00.000Z") == "2026-11-29"
    evening = datetime(2026, 11, 28, 15).astimezone()
    assert due_age("2026-11-29T00:00:00.000Z", evening) == "in 1 day"
    assert due_age("2026-11-29T00:00:00.000Z", evening + timedelta(hours=23)) == "in 9 h"
    assert due_age(utc_text(evening + timedelta(hours=3)), evening) == "in 3 h"
