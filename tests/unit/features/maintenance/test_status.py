from datetime import UTC, datetime, timedelta

import pytest

from pipeline.features.maintenance.registry import JobState, job_statuses, list_due_jobs, list_unfinished_jobs
from pipeline.kernel.feature import NIGHTLY as EVERY_NIGHT, Schedule, ScheduledJob
from pipeline.kernel.job_runs import Report
from pipeline.kernel.store import changes, meta, runs
from pipeline.kernel.times import utc_text
from tests.fakes.in_process import scratch_database

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
EACH_HOUR = Schedule(timedelta(hours=1))


def job(name, schedule, **fields):
    return ScheduledJob(name, "", schedule, lambda _run, _context: Report(), **fields)


HOURLY = job("hourly", EACH_HOUR)
NIGHTLY = job("nightly", EVERY_NIGHT)
FADING = job("fading", EACH_HOUR, idle=timedelta(0))


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def due(database, now=NOW):
    with database.read() as db:
        return list_due_jobs(db, (HOURLY, NIGHTLY, FADING), now)


def ran(database, name, hours_ago, *, error=None, ends=True):
    with database.write() as db:
        run_id = runs.begin(db, name, utc_text(NOW - timedelta(hours=hours_ago)), changes.generation(db))
        if ends:
            runs.end(db, run_id, utc_text(NOW), {}, error)


def write_change(database):
    with database.write() as db:
        changes.append(db, changes.CREATE, ["a"])


def test_empty_workspace_has_only_interval_jobs_due(database):
    assert due(database) == ["hourly", "fading"]


def test_a_workspace_that_saw_no_nightly_job_yet_gets_its_first(database):
    write_change(database)
    assert "nightly" in due(database, datetime.now(UTC) + timedelta(days=2))
    assert "nightly" not in due(database, datetime.now(UTC))


def test_job_is_due_after_its_interval_and_a_change(database):
    ran(database, "hourly", 2)
    ran(database, "fading", 2)
    assert due(database) == ["fading"]
    write_change(database)
    assert due(database) == ["hourly", "fading"]


def test_a_segment_that_is_wanted_is_asked_for_until_it_is_built(database):
    segment = job("segment", EACH_HOUR)
    ran(database, "segment", 0)
    with database.write() as db:
        meta.put(db, meta.SEGMENT_WANTED, "0")
    with database.read() as db:
        assert list_due_jobs(db, (segment,), NOW) == ["segment"]
        assert job_statuses(db, (segment,), NOW)[0].state is JobState.ASKED
    with database.write() as db:
        meta.drop(db, meta.SEGMENT_WANTED)
        assert list_due_jobs(db, (segment,), NOW) == []


def test_job_that_just_ran_is_not_due(database):
    ran(database, "hourly", 0)
    ran(database, "fading", 0)
    write_change(database)
    assert due(database, NOW + timedelta(minutes=59)) == []
    assert due(database, NOW + timedelta(minutes=60)) == ["hourly", "fading"]


def test_where_nothing_is_written_a_job_comes_again_after_its_idle_time(database):
    checking = job("checking", EACH_HOUR, idle=timedelta(days=1))
    ran(database, "checking", 2)
    with database.read() as db:
        assert list_due_jobs(db, (checking,), NOW + timedelta(hours=21)) == []
        assert list_due_jobs(db, (checking,), NOW + timedelta(hours=22)) == ["checking"]
    write_change(database)
    with database.read() as db:
        assert list_due_jobs(db, (checking,), NOW) == ["checking"]


def test_interrupted_job_is_due_immediately(database):
    ran(database, "fading", 2)
    ran(database, "hourly", 0.1, ends=False)
    assert "hourly" in due(database)
    with database.read() as db:
        assert list_unfinished_jobs(db, ["hourly", "fading"]) == ["hourly"]


def test_failed_job_is_due_again_without_changes(database):
    ran(database, "hourly", 2, error="broken")
    assert "hourly" in due(database)


def test_requested_job_is_due(database):
    ran(database, "hourly", 0)
    with database.write() as db:
        runs.request(db, "hourly", utc_text(NOW))
        assert list_unfinished_jobs(db, ["hourly", "fading"]) == ["hourly"]
    assert "hourly" in due(database)


def states(database, now=NOW):
    with database.read() as db:
        return {one.job.name: one.state for one in job_statuses(db, (HOURLY, NIGHTLY, FADING), now)}


def test_job_state_follows_from_its_last_run(database):
    assert set(states(database).values()) == {JobState.NEVER}
    ran(database, "hourly", 2)
    ran(database, "nightly", 2, error="boom")
    ran(database, "fading", 2, ends=False)
    assert states(database) == {
        "hourly": JobState.DONE,
        "nightly": JobState.FAILED,
        "fading": JobState.INTERRUPTED,
    }


def test_a_run_goes_on_while_its_lock_is_held_and_may_be_asked_for_again(database):
    ran(database, "fading", 2, ends=False)
    with database.write() as db:
        runs.lock(db, "fading", "anna", NOW.timestamp(), NOW.timestamp() + 300)
        for name in ("fading", "hourly"):
            runs.request(db, name, utc_text(NOW))
    assert states(database) == {
        "hourly": JobState.ASKED,
        "nightly": JobState.NEVER,
        "fading": JobState.RUNNING,
    }
    assert states(database, NOW + timedelta(minutes=6))["fading"] is JobState.ASKED


def test_a_job_is_due_next_when_its_time_comes_and_never_in_the_past(database):
    write_change(database)
    ran(database, "hourly", -0.25)
    ran(database, "fading", 9)
    with database.read() as db:
        hourly, nightly, fading = job_statuses(db, (HOURLY, NIGHTLY, FADING), NOW)
    assert hourly.next_at == NOW + timedelta(minutes=60)
    assert fading.next_at == NOW
    assert nightly.next_at >= NOW
    assert fading.last.took_s == 9 * 3600
