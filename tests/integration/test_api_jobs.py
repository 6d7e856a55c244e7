import pytest

from pipeline.features.maintenance.registry import JOBS
from tests.fakes.in_process import list_requests, run_job
from tests.fakes.job_runs import replace_job


@pytest.fixture
def written(client):
    client.write("The port is 8123")
    return client


def job(client, name):
    [found] = [item for item in client.get("/v1/jobs").get_json()["items"] if item["name"] == name]
    return found


def test_every_job_is_listed_with_its_rhythm(written):
    items = written.get("/v1/jobs").get_json()["items"]
    assert [item["name"] for item in items] == [one.name for one in JOBS]
    assert all(item["schedule"] and item["next_run_at"] for item in items)
    assert all(item["last_run"] is None for item in items)


def test_requested_job_is_queued_runs_and_reports_its_result(written, container, worker):
    asked = written.post("/v1/jobs/segment")
    assert asked.status_code == 202
    assert container.notify.sent[-1] == ("default", None)
    assert list_requests(worker) == ["segment"]
    run_job(worker, "default", "segment")
    run = job(written, "segment")["last_run"]
    assert run["id"] == asked.get_json()["run_id"]
    assert (run["ok"], run["error"], run["counts"]) == (True, None, {"memories": 1, "turns": 0})
    assert run["started_at"] <= run["ended_at"] <= job(written, "segment")["next_run_at"]


def test_asking_twice_is_asking_once(written):
    first = written.post("/v1/jobs/segment").get_json()
    assert written.post("/v1/jobs/segment").get_json() == first


def test_failed_job_reports_its_error(written, worker, monkeypatch):
    replace_job(monkeypatch, "vectors", lambda _run, _context: {}["nothing"])
    run_job(worker, "default", "vectors")
    run = job(written, "vectors")["last_run"]
    assert (run["ok"], run["error"]) == (False, "KeyError: 'nothing'")
    assert "KeyError" in written.get("/v1/errors").get_json()["items"][0]["message"]


def test_no_such_job_is_not_found(written):
    assert written.post("/v1/jobs/nothing").status_code == 404


def test_every_job_can_run_on_a_small_workspace(written, worker, digested):
    digested()
    for one in JOBS:
        if one.name != "touches":
            assert run_job(worker, "default", one.name).error is None, one.name
