"""Jobs run from a shell: one, or all of them over every workspace, as a line of cron does."""

import json

import pytest
from click.testing import CliRunner

from pipeline.features.maintenance.registry import BY_NAME
from pipeline.kernel.job_runs import Report
from pipeline.kernel.records import Draft
from pipeline.write.accept import accept
from tests.fakes.in_process import open_worker
from tests.fakes.job_runs import replace_job
from web.cli import cli


@pytest.fixture
def workspaces(home, monkeypatch):
    monkeypatch.setattr("pipeline.bootstrap.worker.WorkerContainer", open_worker)
    worker = open_worker(home)
    for workspace_id in ("default", "garden"):
        accept(worker.databases.get(workspace_id, create=True), Draft("The port is 8123"))
    worker.close()


def sleep(*arguments):
    return CliRunner().invoke(cli, ["--json", "sleep", *arguments])


@pytest.mark.usefixtures("workspaces")
def test_one_line_of_cron_runs_every_job_over_every_workspace():
    result = sleep("--all", "--every-workspace")
    assert result.exit_code == 0, result.output
    ran = json.loads(result.stdout)
    expected = [name for name in BY_NAME if name != "touches"]
    assert [(one["workspace"], one["job"]) for one in ran] == [
        (workspace, job) for workspace in ("default", "garden") for job in expected
    ]
    assert all(one["ok"] for one in ran)


@pytest.mark.usefixtures("workspaces")
def test_cron_notices_a_job_that_failed_and_the_others_run(monkeypatch):
    replace_job(monkeypatch, "decay", lambda run, _context: {}[str(run.database.file.parent.name)])
    result = sleep("decay", "archive", "--every-workspace")
    assert result.exit_code == 1
    assert [one["ok"] for one in json.loads(result.stdout)] == [False, True, False, True]


@pytest.mark.usefixtures("workspaces")
def test_a_job_with_more_to_do_goes_on(monkeypatch):
    reports = iter([Report({"pieces": 2}, more=True), Report({"pieces": 1})])
    replace_job(monkeypatch, "decay", lambda _run, _context: next(reports))
    assert json.loads(sleep("decay").stdout)[0]["counts"] == {"pieces": 3}


def test_every_workspace_asks_for_jobs():
    assert sleep("--every-workspace").exit_code == 2


@pytest.mark.usefixtures("workspaces")
def test_a_job_that_runs_in_the_background_already_is_no_failure(monkeypatch):
    monkeypatch.setattr("pipeline.features.maintenance.usecases.runner.run_job", lambda *_given, **_named: None)
    result = sleep("decay")
    assert result.exit_code == 0
    assert [one["ok"] for one in json.loads(result.stdout)] == [True]
