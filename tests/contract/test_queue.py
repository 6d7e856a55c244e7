"""One queue, whatever carries it: names travel, signed; nothing else gets in."""

import pickle
import shutil
import socket
import subprocess
import threading

import pytest
from huey.exceptions import HueyException

from config.settings import Settings
from workers.queue import Doorbell, Queue, Ring, ring


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory):
    pytest.importorskip("redis", reason="the redis package is not installed")
    server = shutil.which("redis-server")
    if server is None:
        pytest.skip("there is no redis-server on this machine")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    folder = tmp_path_factory.mktemp("redis")
    command = [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    import redis

    client = redis.Redis(port=port)
    for _ in range(200):
        try:
            client.ping()
            break
        except redis.ConnectionError:
            threading.Event().wait(0.05)
    client.close()
    yield f"redis://127.0.0.1:{port}/0"
    process.terminate()
    process.wait(timeout=10)


@pytest.fixture(params=["sqlite", "redis"])
def queue_settings(request, tmp_path):
    url = request.getfixturevalue("redis_url") if request.param == "redis" else ""
    return Settings(home=tmp_path / "home", queue_url=url)


@pytest.fixture
def queue(queue_settings):
    queue = Queue(queue_settings)
    queue.huey.flush()
    yield queue
    queue.huey.flush()
    queue.huey.storage.close()


@pytest.fixture
def performed(monkeypatch):
    """What the tasks were called with."""
    calls = []
    from workers import tasks

    for name in ("digest", "run_job", "sweep"):
        monkeypatch.setattr(tasks, name, lambda *names, name=name, **_options: calls.append((name, *names)))
    return calls


def drain(queue):
    while (task := queue.huey.dequeue()) is not None:
        queue.huey.execute(task)


def test_what_is_rung_for_is_performed_once_and_in_order(queue, performed):
    ring(queue, Ring("alpha", "embed"))
    ring(queue, Ring("beta"))
    queue.run_job("segment", "alpha")
    drain(queue)
    drain(queue)
    assert performed == [("digest", "alpha", "embed"), ("sweep", "beta"), ("run_job", "segment", "alpha")]


def test_another_process_of_this_home_reads_the_message(queue, queue_settings, performed):
    ring(queue, Ring("alpha", "embed"))
    other = Queue(queue_settings)
    drain(other)
    other.huey.storage.close()
    assert performed == [("digest", "alpha", "embed")]


def test_a_message_holds_names_only(queue):
    ring(queue, Ring("alpha", "embed"))
    [message] = queue.huey.storage.enqueued_items()
    task = queue.huey.serializer.deserialize(message)
    assert task.args == ("alpha", "embed")
    assert not task.kwargs
    assert len(message) < 400


def test_a_message_of_another_home_is_refused(queue, tmp_path, performed):
    foreign = Queue(Settings(home=tmp_path / "elsewhere"))
    foreign.digest("alpha", "embed")
    [message] = foreign.huey.storage.enqueued_items()
    foreign.huey.storage.close()
    queue.huey.storage.enqueue(message)
    refused(queue)
    assert performed == []


def test_a_message_under_a_former_token_is_refused_and_later_ones_are_not(queue, queue_settings, performed):
    queue.digest("alpha", "embed")
    queue_settings.paths.renew_token()
    refused(queue)
    late = Queue(queue_settings)
    queue.digest("beta", "embed")
    drain(late)
    late.digest("gamma", "embed")
    drain(queue)
    late.huey.storage.close()
    assert performed == [("digest", "beta", "embed"), ("digest", "gamma", "embed")]


def test_a_tampered_message_is_refused(queue, performed):
    queue.digest("alpha", "embed")
    message = queue.huey.storage.dequeue()
    for place in (0, len(message) // 2, len(message) - 1):
        queue.huey.storage.enqueue(message[:place] + bytes([message[place] ^ 1]) + message[place + 1 :])
        refused(queue)
    assert performed == []


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a foreign pickle was opened",))


def test_a_plain_pickle_is_not_opened(queue, performed):
    queue.huey.storage.enqueue(pickle.dumps(Bomb()))
    refused(queue)
    assert performed == []


def refused(queue):
    try:
        task = queue.huey.dequeue()
    except (ValueError, HueyException):
        return
    assert task is None


def test_a_queue_file_that_is_deleted_comes_back(tmp_path, performed):
    queue = Queue(Settings(home=tmp_path / "home"))
    queue.digest("alpha", "embed")
    (tmp_path / "home" / "queue.sqlite").unlink()
    queue.digest("beta", "embed")
    late = Queue(Settings(home=tmp_path / "home"))
    drain(late)
    for each in (queue, late):
        each.huey.storage.close()
    assert performed == [("digest", "beta", "embed")]


class Bell:
    """A broker that can be held up and notes what reaches it."""

    def __init__(self):
        self.rung = []
        self.errors = []
        self.may_ring = threading.Event()
        self.arrived = threading.Semaphore(0)
        self.broken = False

    def __call__(self, what):
        self.arrived.release()
        assert self.may_ring.wait(30)
        if self.broken:
            raise ConnectionError("no broker")
        self.rung.append(what)


@pytest.fixture
def bell():
    return Bell()


@pytest.fixture
def doorbell(bell):
    doorbell = Doorbell(bell, bell.errors.append)
    yield doorbell
    bell.may_ring.set()
    doorbell.close()


def test_the_doorbell_coalesces_what_comes_while_it_rings(bell, doorbell):
    doorbell.ring(Ring("alpha", "embed"))
    assert bell.arrived.acquire(timeout=10)
    for _ in range(100):
        doorbell.ring(Ring("alpha", "embed"))
        doorbell.ring(Ring("beta"))
    bell.may_ring.set()
    doorbell.close()
    assert bell.rung == [Ring("alpha", "embed"), Ring("alpha", "embed"), Ring("beta")]


def test_the_doorbell_never_fails_a_write_and_reports_each_failure(bell, doorbell):
    bell.broken = True
    bell.may_ring.set()
    doorbell.ring(Ring("alpha", "embed"))
    assert bell.arrived.acquire(timeout=10)
    bell.broken = False
    doorbell.ring(Ring("beta"))
    doorbell.close()
    assert bell.rung[-1:] == [Ring("beta")]
    assert all("the doorbell of alpha failed: ConnectionError" in message for message in bell.errors)


def test_a_broken_broker_is_reported(bell, doorbell):
    bell.broken = True
    bell.may_ring.set()
    doorbell.ring(Ring("alpha"))
    doorbell.close()
    assert bell.errors == ["the doorbell of alpha failed: ConnectionError: no broker"]


def test_closing_rings_what_still_waits(bell):
    bell.may_ring.set()
    doorbell = Doorbell(bell, bell.errors.append)
    for number in range(50):
        doorbell.ring(Ring(f"workspace-{number:02}"))
    doorbell.close()
    assert bell.rung == sorted(bell.rung)
    assert len(bell.rung) == 50
