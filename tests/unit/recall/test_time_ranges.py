from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, strategies as st

from pipeline.recall.query import TimeRange, parse_time_range
from tests.fakes.properties import examples

# A Wednesday.
NOW = datetime(2026, 3, 18, 15, 30, tzinfo=UTC)


def day(text):
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=UTC)


DAYS = [
    ("what did we do yesterday?", "2026-03-17", "2026-03-18"),
    ("Yesterday's outage", "2026-03-17", "2026-03-18"),
    ("the day before yesterday", "2026-03-16", "2026-03-17"),
    ("what did I do today", "2026-03-18", "2026-03-19"),
    ("this morning", "2026-03-18", "2026-03-19"),
    ("on 2026-02-03", "2026-02-03", "2026-02-04"),
    ("2024-02-29 was a day", "2024-02-29", "2024-03-01"),
    ("last Tuesday", "2026-03-17", "2026-03-18"),
    ("on wednesday", "2026-03-11", "2026-03-12"),
    ("last Thursday", "2026-03-12", "2026-03-13"),
    ("was machten wir gestern", "2026-03-17", "2026-03-18"),
    ("vorgestern", "2026-03-16", "2026-03-17"),
    ("что было вчера?", "2026-03-17", "2026-03-18"),
    ("позавчера", "2026-03-16", "2026-03-17"),
    ("позавчора", "2026-03-16", "2026-03-17"),
    ("昨天做了什么", "2026-03-17", "2026-03-18"),
    ("一昨日", "2026-03-16", "2026-03-17"),
]
STRETCHES = [
    ("this week", "2026-03-16", "2026-03-23"),
    ("last week", "2026-03-09", "2026-03-16"),
    ("the previous month", "2026-02-01", "2026-03-01"),
    ("this month", "2026-03-01", "2026-04-01"),
    ("past year", "2025-01-01", "2026-01-01"),
    ("in February", "2026-02-01", "2026-03-01"),
    ("in March", "2026-03-01", "2026-04-01"),
    ("in April", "2025-04-01", "2025-05-01"),
    ("last December", "2025-12-01", "2026-01-01"),
    ("during May 2023", "2023-05-01", "2023-06-01"),
    ("in the last 10 days", "2026-03-08", "2026-03-19"),
    ("over the past two weeks", "2026-03-04", "2026-03-19"),
    ("within the last three months", "2025-12-18", "2026-03-19"),
    ("two weeks ago", "2026-03-01", "2026-03-08"),
    ("a day ago", "2026-03-17", "2026-03-18"),
    ("3 days ago", "2026-03-15", "2026-03-16"),
    ("one month ago", "2026-02-03", "2026-03-06"),
]
OPEN = [
    ("since yesterday", "2026-03-17", None),
    ("since Monday", "2026-03-16", None),
    ("since last Tuesday", "2026-03-17", None),
    ("since March", "2026-03-01", None),
    ("since last March", "2026-03-01", None),
    ("since 2026-01-05", "2026-01-05", None),
    ("since the last month", "2026-02-01", None),
    ("after January 2026", "2026-02-01", None),
    ("after 2026-01-05", "2026-01-06", None),
    ("until yesterday", None, "2026-03-17"),
    ("before last Friday", None, "2026-03-13"),
    ("before the 2026-01-05", None, "2026-01-05"),
    ("till last week", None, "2026-03-09"),
]


@pytest.mark.parametrize(("text", "since", "until"), [*DAYS, *STRETCHES, *OPEN])
def test_a_time_is_read_as_of_now(text, since, until):
    assert parse_time_range(text, NOW) == TimeRange(day(since), day(until))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "which port does staging use",
        "2026-02-30 is no day",
        "2026-13-01 is no month",
        "0000-01-01 is no year",
        "2025-02-29 was none either",
        "999 years ago and 3000 years ago",
        "may I march on",
        "the weekly report",
        "todays",
        "version 12026-01-011",
        "not a day too soon",
        "Tuesday",
    ],
)
def test_text_without_a_time_has_no_time_range(text):
    assert parse_time_range(text, datetime(900, 1, 1, tzinfo=UTC) if "years ago" in text else NOW) is None


def test_a_day_that_no_calendar_has_does_not_hide_one_that_it_has():
    assert parse_time_range("2026-02-30 or yesterday", NOW) == TimeRange(day("2026-03-17"), day("2026-03-18"))


def test_a_leap_day_and_the_ends_of_months():
    leap = datetime(2024, 2, 29, tzinfo=UTC)
    assert parse_time_range("in the last one year", leap).since == day("2023-02-28")
    assert parse_time_range("last month", datetime(2026, 3, 31, tzinfo=UTC)) == TimeRange(
        day("2026-02-01"), day("2026-03-01")
    )
    assert parse_time_range("this month", datetime(2026, 12, 31, tzinfo=UTC)) == TimeRange(
        day("2026-12-01"), day("2027-01-01")
    )


PARTS = st.sampled_from(
    "since until before after last past this in on the within 0 1 999 two ten a day days weeks months years ago "  # noqa: SIM905 - readable as words
    "yesterday today Tuesday friday May december 2026 0001 9999-12-31 2026-02-30 ſunday fıve вчера 昨天".split()
)
moments = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 - bounds are naive


@examples(400)
@example("in the last 999 years", datetime(5, 1, 1, tzinfo=UTC))
@example("this year", datetime(9999, 1, 1, tzinfo=UTC))
@given(st.text(max_size=40) | st.lists(PARTS, max_size=8).map(" ".join), moments)
def test_any_text_at_any_time_is_read_without_complaint(text, now):
    span = parse_time_range(text, now)
    if span is not None:
        since, until = span.days
        assert since < until
        assert span.since is not None or span.until is not None


@given(moments)
def test_days_are_those_that_the_store_counts(moment):
    import sqlite3
    from contextlib import closing

    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    with closing(sqlite3.connect(":memory:")) as db:
        (stored,) = db.execute("SELECT julianday(?)", (f"{midnight:%Y-%m-%dT%H:%M:%S}".rjust(19, "0"),)).fetchone()
    assert TimeRange(midnight, None).days[0] == stored


@pytest.mark.usefixtures("central_europe")
def test_days_are_those_of_the_local_time_zone():
    # In Berlin, it is the 19th.
    late = datetime(2026, 3, 18, 23, 30, tzinfo=UTC)
    start, end = (datetime(2026, 3, number, 23, tzinfo=UTC) for number in (17, 18))
    assert parse_time_range("yesterday", late) == TimeRange(start, end)
    assert parse_time_range("gestern", late.replace(hour=12)) == TimeRange(start - timedelta(days=1), start)
    # The clocks change on the 29th.
    assert parse_time_range("last month", datetime(2026, 4, 2, tzinfo=UTC)) == TimeRange(
        datetime(2026, 2, 28, 23, tzinfo=UTC), datetime(2026, 3, 31, 22, tzinfo=UTC)
    )
