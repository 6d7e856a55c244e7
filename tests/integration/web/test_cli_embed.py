"""`reverie model embed` with a fake GPU: what it embeds, where, and what it leaves to the workers."""

import json

import pytest
from click.testing import CliRunner

from pipeline.enums import Device
from pipeline.index.gpu_encoder import GpuEncoder
from pipeline.records import Draft, Stage
from pipeline.store import work
from tests.fakes.gpu import FakeOriginal
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


@pytest.fixture
def use_gpu(monkeypatch):
    """Let torch find a GPU on which this model runs; return the numbers of texts that it encoded."""

    def use(original: FakeOriginal) -> list[int]:
        monkeypatch.setattr("pipeline.index.gpu_encoder.list_gpus", lambda _torch: [Device.CUDA])
        monkeypatch.setattr(
            "pipeline.index.gpu_encoder.load_gpu_encoder",
            lambda compiled, device: GpuEncoder(compiled, original, device),
        )
        return original.encoded

    return use


@pytest.fixture
def no_gpu(monkeypatch):
    """Let torch find no GPU."""
    monkeypatch.setattr("pipeline.index.gpu_encoder.list_gpus", lambda _torch: [])


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


def test_a_gpu_embeds_every_workspace(home, use_gpu):
    encoded = use_gpu(FakeOriginal())
    result = embed()
    assert result.exit_code == 0, result.output
    assert result.stdout == "embedded 3 memories and 0 turns on cuda\n"
    assert count_vectors(home) == {"default": 2, "garden": 1}
    assert list_claimable(home) == {"default": 0, "garden": 0}
    # The sample is checked once, before the memories.
    assert encoded[1:] == [2, 1]


def test_a_named_workspace_is_embedded_alone(home, use_gpu):
    use_gpu(FakeOriginal())
    result = embed("-w", "garden", "--json")
    assert json.loads(result.stdout) == {"device": "cuda", "memories": 1, "turns": 0, "failed": 0}
    assert count_vectors(home) == {"default": 0, "garden": 1}


def test_an_unknown_workspace_is_not_created(home):
    assert embed("-w", "attic").exit_code == 1
    assert not (home.home / "workspaces" / "attic").exists()


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_the_cpu_embeds(home):
    result = embed()
    assert result.stdout == "no GPU found; embedded 3 memories and 0 turns on the CPU\n"
    assert count_vectors(home) == {"default": 2, "garden": 1}


def test_the_cpu_is_used_on_request_although_there_is_a_gpu(home, use_gpu):
    encoded = use_gpu(FakeOriginal())
    assert embed("--device", "cpu").stdout == "embedded 3 memories and 0 turns on the CPU\n"
    assert encoded == []
    assert count_vectors(home) == {"default": 2, "garden": 1}


@pytest.mark.usefixtures("no_gpu")
def test_a_requested_gpu_that_is_missing_is_an_error(home):
    result = embed("--device", "cuda")
    assert result.exit_code == 1
    assert "torch finds no cuda device. Install a build of torch with CUDA" in result.stderr
    assert list_claimable(home) == {"default": 2, "garden": 1}


def test_nothing_is_embedded_with_other_vectors(home, use_gpu):
    use_gpu(FakeOriginal(cosine=0.9))
    result = embed()
    assert result.exit_code == 1
    assert "differ from the compiled encoder's: cosine 0.9000, at least 0.95 is required" in result.stderr
    assert count_vectors(home) == {"default": 0, "garden": 0}
    assert list_claimable(home) == {"default": 2, "garden": 1}


def test_memories_are_pending_again_after_a_failure_of_the_gpu(home, use_gpu):
    use_gpu(FakeOriginal(fails_after=1))
    result = embed()
    assert result.exit_code == 1
    assert "failed on cuda: CUDA out of memory" in result.stderr
    assert list_claimable(home) == {"default": 2, "garden": 1}
