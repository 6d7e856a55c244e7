from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from pipeline.bootstrap.clockwork import Clockwork
from pipeline.jobs.appointments import BY_NAME
from pipeline.records import Draft
from pipeline.store import changes, runs
from pipeline.store.database import Database
from pipeline.write.accept import accept
from tests.fakes.house import PROFILE
from workers.schedule import build_clock


@pytest.fixture
def clockwork(home):
    home.paths.ensure()
    clockwork = Clockwork(home)
    yield clockwork
    clockwork.close()


@pytest.fixture
def workspace(home):
    database = Database(home.paths.workspace("alpha").events, PROFILE, create=True)
    accept(database, Draft("The port is 8123"))
    yield database
    database.close()


def ticker(clockwork):
    sent = []
    queue = SimpleNamespace(
        sweep=lambda workspace: sent.append(("sweep", workspace)),
        run_job=lambda name, workspace: sent.append((name, workspace)),
    )
    [tick] = build_clock(clockwork, queue).get_jobs()

    def run():
        sent.clear()
        tick.func()
        return list(sent)

    return run


def everything_ran(database):
    with database.write() as db:
        for name in BY_NAME:
            run_id = runs.begin(db, name, "2026-01-01T00:00:00.000Z", changes.generation(db))
            runs.end(db, run_id, "2026-01-01T00:00:01.000Z", {}, None)


def test_a_tick_sends_what_is_due_and_writes_nothing(clockwork, workspace):
    before = workspace.file.read_bytes()
    sent = ticker(clockwork)()
    assert ("segment", "alpha") in sent
    assert ("sweep", "alpha") in sent
    assert ("touches", "alpha") not in sent
    assert workspace.file.read_bytes() == before


def test_what_would_find_nothing_new_is_not_sent(clockwork, workspace):
    everything_ran(workspace)
    with workspace.write() as db:
        db.execute("DELETE FROM work")
    tick = ticker(clockwork)
    tick()
    # Only what time alone gives something to do.
    assert {name for name, _ in tick()} == {name for name, a in BY_NAME.items() if a.idle}


def test_waiting_work_is_swept_at_every_tick(clockwork, workspace):
    everything_ran(workspace)
    tick = ticker(clockwork)
    tick()
    assert ("sweep", "alpha") in tick()


def test_a_workspace_that_cannot_be_read_does_not_stop_the_others(clockwork, workspace, home):
    broken = home.paths.workspace("broken").events
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"no database at all" * 1000)
    assert ("segment", "alpha") in ticker(clockwork)()
    assert [error.component for error in clockwork.operations.errors(workspace="broken", limit=5)] == ["scheduler"]


def test_the_clock_ticks_at_once_and_then_as_the_settings_say(clockwork):
    clock = build_clock(clockwork, SimpleNamespace(sweep=None, run_job=None))
    [tick] = clock.get_jobs()
    assert tick.trigger.interval.total_seconds() == clockwork.settings.sweep_interval_s
    assert tick.next_run_time <= datetime.now(UTC)
    # Defaults reach a job when the clock starts; until then they stand on the clock.
    assert clock._job_defaults == {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
