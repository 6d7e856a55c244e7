"""The worker as it is run: huey's own script, over what a web server has written and sent."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from tests.fakes.in_process import fast_settings, open_web
from web.http.app import create_app
from workers.queue import WorkerQueue

ROOT = Path(__file__).parents[2]
SCRIPT = Path(sys.executable).parent / "huey_consumer"
DEADLINE_S = 90

IMPATIENT = """
from huey.bin.huey_consumer import consumer_main
from pipeline.index.encoders import DocumentEncoders
from tests.fakes.encoder import HashEncoder
from workers import consumer
consumer.IDLE_S = 0.2
encoder = HashEncoder()
DocumentEncoders.get = lambda _encoders, _model: encoder
consumer_main()
"""

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def home(tmp_path):
    """A home with a web server in this process, and what sends messages to its workers."""
    settings = fast_settings(tmp_path / "home")
    container = open_web(settings)
    client = create_app(container).test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {container.token}"
    queue = WorkerQueue(settings)
    send = queue.task(name="digest")(_named_as_in_the_worker)
    yield settings.paths.root, client, send
    queue.storage.close()
    container.close()


def test_huey_consumer_digests_a_real_write(home):
    root, client, send = home
    client.post("/v1/memories", json={"content": "Ann moved the gateway to Lisbon"})
    send("default", "entities")
    with _consumer(root, [SCRIPT]) as worker:
        _wait_until_digested(client, worker)
        worker.terminate()
        assert worker.wait(timeout=30) == 0
    entities = client.get("/v1/entities").get_json()["items"]
    assert {"ann", "lisbon"} <= {entity["name"] for entity in entities}


def test_an_idle_worker_lets_its_models_go_and_comes_back(home):
    root, client, send = home
    with _consumer(root, [sys.executable, "-c", IMPATIENT], "-c", "1") as worker:
        for content in ("Ann moved the gateway to Lisbon", "Bob moved the gateway to Madrid"):
            client.post("/v1/memories", json={"content": content})
            send("default", "entities")
            _wait_until_digested(client, worker)
            (process,) = client.get("/v1/queue").get_json()["workers"]
            pid = int(process["owner"].split(":")[1])
            _wait_until(lambda pid=pid: not psutil.pid_exists(pid), "the process that loaded models is gone")
        worker.terminate()
        said, _ = worker.communicate(timeout=30)
    assert worker.returncode == 0
    assert "died" not in said
    entities = client.get("/v1/entities").get_json()["items"]
    assert {"lisbon", "madrid"} <= {entity["name"] for entity in entities}


def _wait_until_digested(client, worker):
    def digested():
        assert worker.poll() is None, worker.stdout.read()
        return client.get("/v1/queue").get_json()["pending"]["entities"] == 0

    _wait_until(digested, "all is digested")


def _wait_until(holds, what):
    end = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < end, f"not in time: {what}"
        threading.Event().wait(0.1)


def _named_as_in_the_worker(_workspace_id, _stage):
    raise AssertionError("the worker has the task itself")


_named_as_in_the_worker.__module__ = "workers.tasks"


def _consumer(home, program, *options):
    return subprocess.Popen(
        [*program, "workers.tasks.huey", "-w", "1", "-k", "process", "-g", "TERM", "-t", "1", *options],
        env=os.environ | {"REVERIE_HOME": str(home), "REVERIE_EMBEDDING_MODEL": "hash", "PYTHONPATH": str(ROOT)},
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
