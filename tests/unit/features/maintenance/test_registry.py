"""When jobs run: by APScheduler's triggers, at moments that every process finds alike, from the last run on."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from config.settings import Settings
from pipeline.features.maintenance.registry import JOBS, list_scheduled_jobs
from pipeline.kernel.feature import NIGHTLY, NIGHTLY_HOUR, Schedule

HOURLY = Schedule(timedelta(hours=1))
moments = st.integers(0, 20 * 365 * 24 * 3600).map(lambda s: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=s))


def test_an_interval_goes_by_the_clock():
    last = datetime(2026, 1, 1, 12, 20, tzinfo=UTC)
    assert HOURLY.next_after(last) == datetime(2026, 1, 1, 13, tzinfo=UTC)
    assert HOURLY.last_before(last) == datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_next_run_is_strictly_after_the_last():
    three = datetime(2026, 1, 1, 3, tzinfo=UTC)
    assert HOURLY.next_after(three) == three + timedelta(hours=1)
    following = NIGHTLY.next_after(three)
    assert NIGHTLY.next_after(following) > following


@given(moments)
def test_nightly_job_is_due_within_a_day_at_its_hour(last):
    following = NIGHTLY.next_after(last)
    # A change of the clocks makes one day longer.
    assert timedelta() < following - last <= timedelta(hours=25)
    assert (following.astimezone().hour, following.astimezone().minute) == (NIGHTLY_HOUR, 0)
    assert NIGHTLY.last_before(following) == following
    assert NIGHTLY.last_before(last) <= last


@given(moments, st.integers(1, 400))
def test_many_missed_runs_are_made_up_for_once(last, days):
    now = last + timedelta(days=days, hours=25)
    for schedule in (HOURLY, NIGHTLY):
        assert schedule.next_after(last) <= now
        assert schedule.next_after(now) > now


@pytest.mark.parametrize(
    ("every", "text"),
    [
        (timedelta(seconds=5), "every 5 s"),
        (timedelta(seconds=90), "every 90 s"),
        (timedelta(minutes=10), "every 10 min"),
        (timedelta(hours=1), "every 1 h"),
        (None, "nightly at 03:00"),
    ],
)
def test_schedule_is_shown_in_words(every, text):
    assert str(Schedule(every)) == text


def test_no_name_is_given_twice():
    names = [job.name for job in JOBS]
    assert len(names) == len(set(names))


def test_settings_change_the_rhythm_of_some():
    schedules = {job.name: job.schedule for job in list_scheduled_jobs(Settings(segment_interval_s=7))}
    assert schedules["segment"] == Schedule(timedelta(seconds=7))
    assert schedules["decay"] == NIGHTLY


@pytest.mark.usefixtures("central_europe")
@pytest.mark.parametrize(
    ("last", "following"),
    [
        ("2026-03-28T12:00", "2026-03-29T01:00"),
        ("2026-10-24T12:00", "2026-10-25T02:00"),
        ("2026-10-25T02:00", "2026-10-26T02:00"),
    ],
)
def test_a_nightly_job_begins_at_three_also_when_clocks_change(last, following):
    moment = datetime.fromisoformat(f"{last}+00:00")
    assert NIGHTLY.next_after(moment) == datetime.fromisoformat(f"{following}+00:00")


@pytest.mark.usefixtures("zone_told_as_a_rule")
def test_a_nightly_job_begins_at_three_where_the_zone_has_no_name():
    begins = NIGHTLY.next_after(datetime.now(UTC)).astimezone()
    # On a day on which clocks change it is off by an hour.
    assert begins.hour in (NIGHTLY_HOUR - 1, NIGHTLY_HOUR, NIGHTLY_HOUR + 1)
