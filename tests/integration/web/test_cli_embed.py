"""`reverie model embed` embeds what is pending."""

import json

import pytest
from click.testing import CliRunner

from pipeline.kernel.records import Draft, Stage
from pipeline.kernel.store import work
from tests.fakes.in_process import accept_batch, open_worker
from web.cli import cli

TEXTS = {"default": ["The port is 8123", "Anna reviews every migration"], "garden": ["Tulips are planted in autumn"]}


@pytest.fixture(autouse=True)
def home(home, monkeypatch):
    """A data directory with pending memories in two workspaces."""
    monkeypatch.setattr("pipeline.bootstrap.worker.WorkerContainer", open_worker)
    worker = open_worker(home)
    for workspace_id, texts in TEXTS.items():
        accept_batch(worker.databases.get(workspace_id, create=True), [Draft(text) for text in texts])
    worker.close()
    return home


def embed(*arguments):
    return CliRunner().invoke(cli, ["model", "embed", *arguments])


def list_claimable(home):
    """Return for each workspace the number of memories that a worker can embed now, at their first attempt."""
    worker = open_worker(home)
    numbers = {}
    for name in TEXTS:
        with worker.databases.get(name).write() as db:
            items = work.claim(db, Stage.EMBED, worker.owner, limit=10, lease_s=60, now=2e9)
            work.release(db, items, worker.owner)
        assert all(item.attempts == 1 for item in items)
        numbers[name] = len(items)
    worker.close()
    return numbers


def count_vectors(home):
    worker = open_worker(home)
    numbers = {name: worker.vectors(name).count() for name in TEXTS}
    worker.close()
    return numbers


def test_each_workspace_is_embedded(home):
    result = embed()
    assert result.exit_code == 0, result.output
    assert result.stdout == "embedded 3 memories and 0 turns\n"
    assert count_vectors(home) == {"default": 2, "garden": 1}
    assert list_claimable(home) == {"default": 0, "garden": 0}


def test_a_named_workspace_is_embedded_alone(home):
    result = embed("-w", "garden", "--json")
    assert json.loads(result.stdout) == {"memories": 1, "turns": 0, "failed": 0}
    assert count_vectors(home) == {"default": 0, "garden": 1}


def test_an_unknown_workspace_is_not_created(home):
    assert embed("-w", "attic").exit_code == 1
    assert not (home.home / "workspaces" / "attic").exists()
