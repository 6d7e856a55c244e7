"""The worker as it is run: huey's own script, over what a web server has written and sent."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.fakes.in_process import fast_settings, open_web
from web.app import create_app
from workers.queue import WorkerQueue

SCRIPT = Path(sys.executable).parent / "huey_consumer"
DEADLINE_S = 90

pytestmark = pytest.mark.timeout(150)


def test_huey_consumer_digests_a_real_write(tmp_path):
    settings = fast_settings(tmp_path / "home")
    container = open_web(settings)
    client = create_app(container).test_client()
    authorised = {"Authorization": f"Bearer {container.token}"}
    client.post("/v1/memories", json={"content": "Ann moved the gateway to Lisbon"}, headers=authorised)
    queue = WorkerQueue(settings)
    queue.task(name="digest")(_named_as_in_the_worker)("default", "entities")
    with _consumer(settings.paths.root) as worker:
        end = time.monotonic() + DEADLINE_S
        while (left := client.get("/v1/queue", headers=authorised).get_json()["pending"]["entities"]) > 0:
            assert time.monotonic() < end, f"{left} pieces of work wait still"
            assert worker.poll() is None, worker.stdout.read()
            threading.Event().wait(0.1)
        worker.terminate()
        assert worker.wait(timeout=30) == 0
    entities = client.get("/v1/entities", headers=authorised).get_json()["items"]
    assert {"ann", "lisbon"} <= {entity["name"] for entity in entities}
    queue.storage.close()
    container.close()


def _named_as_in_the_worker(_workspace_id, _stage):
    raise AssertionError("the worker has the task itself")


_named_as_in_the_worker.__module__ = "workers.tasks"


def _consumer(home):
    return subprocess.Popen(
        [SCRIPT, "workers.tasks.huey", "-w", "1", "-k", "process", "-g", "TERM", "-t", "8"],
        env=os.environ | {"REVERIE_HOME": str(home), "REVERIE_EMBEDDING_MODEL": "hash"},
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
