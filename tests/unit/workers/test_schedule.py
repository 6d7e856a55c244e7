import signal
from datetime import UTC, datetime, timedelta

import pytest
from apscheduler.events import EVENT_JOB_SUBMITTED
from apscheduler.triggers.cron import CronTrigger

from pipeline.bootstrap.scheduler import SchedulerContainer
from pipeline.features.maintenance import schedule_scan
from pipeline.features.maintenance.registry import BY_NAME
from pipeline.kernel.records import Draft
from pipeline.kernel.store import changes, runs
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.write.accept import accept
from tests.fakes.in_process import PROFILE
from workers import tasks
from workers.schedule import build_clock, tick

CLOCKED = [name for name, job in BY_NAME.items() if not job.elsewhere]


@pytest.fixture
def container(home):
    home.paths.ensure()
    container = SchedulerContainer(home)
    yield container
    container.close()


@pytest.fixture
def workspace(home):
    database = SqliteDatabase(home.paths.workspace("alpha").events, PROFILE, create=True)
    accept(database, Draft("The port is 8123"))
    yield database
    database.close()


@pytest.fixture
def sent(monkeypatch):
    """What was sent, in order."""
    messages = []
    monkeypatch.setattr(tasks, "sweep", lambda workspace: messages.append(("sweep", workspace)))
    monkeypatch.setattr(tasks, "run_job", lambda name, workspace: messages.append((name, workspace)))
    return messages


@pytest.fixture
def fire(container, sent):
    """Fire a trigger; return what was sent."""
    jobs = {job.id: job for job in build_clock(container).get_jobs()}

    def fire(name="sweep"):
        sent.clear()
        jobs[name].func(*jobs[name].args)
        return list(sent)

    return fire


def end_every_job(database):
    with database.write() as db:
        for name in BY_NAME:
            run_id = runs.begin(db, name, "2026-01-01T00:00:00.000Z", changes.generation(db))
            runs.end(db, run_id, "2026-01-01T00:00:01.000Z", {}, None)


def test_first_sweep_sends_overdue_jobs_and_writes_nothing(fire, workspace):
    before = workspace.file.read_bytes()
    sent = fire()
    assert ("segment", "alpha") in sent
    assert ("sweep", "alpha") in sent
    assert ("touches", "alpha") not in sent
    assert workspace.file.read_bytes() == before


def test_later_sweeps_send_only_unfinished_jobs(fire, workspace):
    fire()
    assert fire() == [("sweep", "alpha")]
    with workspace.write() as db:
        runs.request(db, "arcs", "2026-01-01T00:00:00.000Z")
        runs.begin(db, "decay", "2026-01-01T00:00:00.000Z", 0)
    assert sorted(fire()) == [("arcs", "alpha"), ("decay", "alpha"), ("sweep", "alpha")]


def test_a_trigger_sends_its_job_where_it_is_due(fire, workspace):
    assert fire("arcs") == [("arcs", "alpha")]
    end_every_job(workspace)
    assert fire("arcs") == []
    accept(workspace, Draft("The port is 8124"))
    assert fire("arcs") == [("arcs", "alpha")]


def test_jobs_without_changes_are_sent_only_if_due_by_time(fire, workspace):
    end_every_job(workspace)
    # Only what time alone gives something to do.
    assert {name for name in CLOCKED if fire(name)} == {name for name in CLOCKED if BY_NAME[name].idle is not None}


def test_waiting_work_is_swept_at_every_tick(fire, workspace):
    end_every_job(workspace)
    fire()
    assert ("sweep", "alpha") in fire()


def test_nothing_is_sent_where_nothing_waits(fire, workspace):
    end_every_job(workspace)
    with workspace.write() as db:
        db.execute("DELETE FROM work")
    fire()
    assert fire() == []


def test_a_workspace_that_cannot_be_read_does_not_stop_the_others(fire, container, workspace, home):
    broken = home.paths.workspace("broken").events
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"no database at all" * 1000)
    assert ("segment", "alpha") in fire()
    assert {error.component for error in container.operations.errors(workspace="broken", limit=5)} == {"scheduler"}


def test_a_restart_sweeps_no_workspace_in_which_nothing_happened(fire, workspace, container, home, monkeypatch, sent):
    end_every_job(workspace)
    with workspace.write() as db:
        db.execute("DELETE FROM work")
    monkeypatch.setattr(schedule_scan, "SAME_MOMENT_S", -60)
    fire()
    container.close()
    again = SchedulerContainer(home)
    opened = []
    monkeypatch.setattr(again.databases, "get", opened.append)
    sent.clear()
    next(job for job in build_clock(again).get_jobs() if job.id == "sweep").func()
    # What time alone gives something to do is made up for.
    assert {name for name, _ in sent} <= set(CLOCKED)
    assert opened == []
    again.close()


def test_every_job_has_a_trigger_according_to_the_settings(container):
    clock = build_clock(container)
    jobs = {job.id: job for job in clock.get_jobs()}
    assert set(jobs) == {"sweep", "sync", "sessions of agents", *CLOCKED}
    assert jobs["sweep"].trigger.interval.total_seconds() == container.settings.sweep_interval_s
    assert jobs["sweep"].next_run_time <= datetime.now(UTC)
    assert isinstance(jobs["decay"].trigger, CronTrigger)
    assert jobs["segment"].trigger.interval.total_seconds() == container.settings.segment_interval_s


def test_a_pause_of_the_scheduler_gives_one_run(container):
    clock, times = build_clock(container), []

    def note(event):
        times.extend(event.scheduled_run_times)
        clock.shutdown(wait=False)

    clock.remove_all_jobs()
    clock.add_listener(note, EVENT_JOB_SUBMITTED)
    clock.add_job(int, "interval", seconds=1, next_run_time=datetime.now(UTC) - timedelta(hours=1))
    clock.start()
    assert len(times) == 1


def test_a_scheduler_that_is_stopped_before_it_ticks_just_ends(home, monkeypatch):
    home.paths.ensure()
    # A signal that comes as soon as somebody listens for it.
    monkeypatch.setattr(signal, "signal", lambda number, handle: handle(number, None))
    assert tick(home) == 0
