from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.jobs.appointments import APPOINTMENTS
from pipeline.jobs.calendar import NIGHT_BEGINS, Appointment, is_due, next_run

HOURLY = Appointment("hourly", "", timedelta(hours=1))
NIGHTLY = Appointment("nightly", "")
moments = st.integers(0, 20 * 365 * 24 * 3600).map(lambda s: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=s))


def test_an_interval_counts_from_the_last_run():
    last = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert next_run(HOURLY, last, last) == last + timedelta(hours=1)
    assert not is_due(HOURLY, last, last + timedelta(minutes=59))
    assert is_due(HOURLY, last, last + timedelta(hours=1))


def test_what_never_ran_at_an_interval_is_due_now():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert is_due(HOURLY, None, now)


@given(moments)
def test_a_night_lies_within_a_day_after_the_last_run_and_begins_on_the_hour(last):
    following = next_run(NIGHTLY, last, last)
    # A change of the clocks makes one day longer.
    assert timedelta() < following - last <= timedelta(hours=25)
    assert (following.astimezone().hour, following.astimezone().minute) == (NIGHT_BEGINS.hour, NIGHT_BEGINS.minute)


@given(moments, st.integers(1, 400))
def test_many_missed_runs_are_made_up_for_once(last, days):
    now = last + timedelta(days=days, hours=25)
    for appointment in (HOURLY, NIGHTLY):
        assert is_due(appointment, last, now)
        assert not is_due(appointment, now, now)


@pytest.mark.parametrize(
    ("every", "told"),
    [
        (timedelta(seconds=5), "every 5 s"),
        (timedelta(seconds=90), "every 90 s"),
        (timedelta(minutes=10), "every 10 min"),
        (timedelta(hours=1), "every 1 h"),
        (None, "nightly at 03:00"),
    ],
)
def test_a_rhythm_is_told_in_words(every, told):
    assert Appointment("a", "", every).schedule == told


def test_no_name_is_given_twice():
    names = [appointment.name for appointment in APPOINTMENTS]
    assert len(names) == len(set(names))


@pytest.mark.usefixtures("central_europe")
@pytest.mark.parametrize(
    ("last", "following"),
    [
        ("2026-03-28T12:00", "2026-03-29T01:00"),
        ("2026-10-24T12:00", "2026-10-25T02:00"),
        ("2026-10-25T02:00", "2026-10-26T02:00"),
    ],
)
def test_a_night_begins_at_three_also_when_clocks_change(last, following):
    moment = datetime.fromisoformat(f"{last}+00:00")
    assert next_run(NIGHTLY, moment, moment) == datetime.fromisoformat(f"{following}+00:00")
