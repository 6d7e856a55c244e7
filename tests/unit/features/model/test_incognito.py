"""An incognito workspace sends nothing to a model, whichever job runs."""

import pytest

from config.settings import load_settings
from pipeline.bootstrap.worker import WorkerContainer
from pipeline.features.maintenance.registry import BY_NAME
from pipeline.features.model import extractor as model
from pipeline.features.model.extractor import Failure
from pipeline.kernel.store import duplicates
from tests.fakes.in_process import digest_all, open_worker, run_job
from tests.fakes.job_runs import read, write


@pytest.fixture
def worker(home, monkeypatch):
    monkeypatch.setenv("REVERIE_LLM_URL", "http://127.0.0.1:9/v1")
    worker = open_worker(load_settings())
    yield worker
    worker.close()


@pytest.fixture
def prompts(monkeypatch):
    sent = []
    monkeypatch.setattr(model, "post", lambda _endpoint, body: sent.append(body["messages"]) or Failure.UNREACHABLE)
    return sent


def run_every_job(worker: WorkerContainer):
    """Run every job over a workspace where dedup, for one, has something to ask."""
    database = worker.databases.get("default", create=True)
    ids = [
        write(database, number, f"The build runs nightly on the small {where}.")
        for number, where in enumerate(("server", "machine in the cellar"))
    ]
    digest_all(worker)
    with database.write() as db:
        duplicates.add(db, *(read(database, one).seq for one in ids), 0.85, ("not similar enough to merge",), "-")
    for name in BY_NAME:
        if name != "touches":
            outcome = run_job(worker, "default", name)
            assert outcome.error is None


def test_without_incognito_the_model_is_asked(worker, prompts):
    run_every_job(worker)
    assert prompts


def test_incognito_no_job_asks_the_model(worker, prompts, home):
    paths = home.paths.workspace("default")
    paths.config.parent.mkdir(parents=True)
    paths.config.write_text("incognito = true\n")
    run_every_job(worker)
    assert prompts == []
