import time

import pytest

from pipeline.kernel.job_runs import Report, reap, run_job
from pipeline.kernel.records import Stage
from pipeline.kernel.store import changes, runs, work
from pipeline.kernel.store.runs import KEPT_RUNS
from tests.fakes.in_process import scratch_database


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def run(database, job, owner="me", errors=None):
    sink = [] if errors is None else errors
    return run_job("arcs", job, database, owner, pausing=lambda: False, on_error=sink.append)


def last(database):
    with database.read() as db:
        return runs.last(db, "arcs")


def test_a_run_is_recorded_from_beginning_to_end(database):
    outcome = run(database, lambda _run: Report({"arcs": 3}))
    found = last(database)
    assert (found.id, found.ok, found.counts, found.error) == (outcome.run_id, True, {"arcs": 3}, None)
    assert found.started_at <= found.ended_at
    assert outcome.error is None


def test_job_exception_is_recorded_and_logged(database):
    errors = []
    outcome = run(database, lambda _run: {}["nothing"], errors=errors)
    assert outcome.error == "KeyError: 'nothing'"
    assert errors == [outcome.error]
    assert (last(database).ok, last(database).error) == (False, outcome.error)


def test_a_job_runs_once_at_a_time(database):
    def job(_run):
        assert run(database, lambda _inner: pytest.fail("ran twice"), owner="somebody else") is None
        return Report()

    assert run(database, job) is not None
    assert run(database, lambda _run: Report(), owner="somebody else") is not None


def test_the_lock_of_one_that_is_gone_ends(database):
    with database.write() as db:
        assert runs.lock(db, "arcs", "gone", time.time() - 10, time.time() - 5)
    assert run(database, lambda _run: Report()) is not None


def test_one_that_is_asked_to_end_leaves_its_run_to_the_next(database):
    def interrupted(_run):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(database, interrupted)
    open_run = last(database)
    assert open_run.ended_at is None
    assert run(database, lambda _run: Report(), owner="somebody else").run_id == open_run.id


def test_requested_run_keeps_its_id(database):
    with database.write() as db:
        asked = runs.request(db, "arcs", "2026-01-01T00:00:00.000Z")
        assert runs.request(db, "arcs", "2026-01-02T00:00:00.000Z") == asked
        assert runs.list_requested(db) == ["arcs"]
    assert run(database, lambda _run: Report()).run_id == asked
    with database.read() as db:
        assert runs.list_requested(db) == []


def test_only_the_newest_runs_are_kept(database):
    for _ in range(KEPT_RUNS + 5):
        newest = run(database, lambda _run: Report())
    with database.read() as db:
        assert db.execute("SELECT count(*) FROM job_run").fetchone()[0] == KEPT_RUNS
    assert last(database).id == newest.run_id


def test_run_records_the_generation_it_saw(database):
    with database.write() as db:
        changes.append(db, changes.CREATE, ["a", "b"])
    run(database, lambda _run: Report())
    assert last(database).generation == 2


def claim(database, owner, now):
    with database.write() as db:
        return work.claim(db, Stage.EMBED, owner, limit=10, lease_s=1e10, now=now)


def test_only_a_dead_owner_loses_its_lease():
    with scratch_database() as database:
        with database.write() as db:
            work.add(db, [1], [Stage.EMBED], 0.0)
        claim(database, "gone", 1.0)
        with database.write() as db:
            work.add(db, [2], [Stage.EMBED], 0.0)
        claim(database, "alive", 1.0)
        assert reap(database, lambda owner: owner == "alive") == [Stage.EMBED]
        assert [item.seq for item in claim(database, "next", 2.0)] == [1]
        assert reap(database, lambda _owner: True) == []


def test_work_that_kills_its_worker_repeatedly_is_dead_lettered():
    with scratch_database() as database:
        with database.write() as db:
            work.add(db, [1], [Stage.EMBED], 0.0)
        for _ in range(work.MAX_ATTEMPTS):
            assert claim(database, "gone", 1.0)
            reap(database, lambda _owner: False)
        assert claim(database, "gone", 1.0) == []
        with database.read() as db:
            assert work.count_dead(db)[Stage.EMBED] == 1


def test_nothing_that_waits_is_nothing_due():
    with scratch_database() as database:
        assert reap(database, lambda _owner: True) == []
