"""One queue, whatever carries it: names travel, signed; nothing else gets in."""

import pickle
import shutil
import socket
import subprocess
import threading
from types import SimpleNamespace

import pytest
from huey.exceptions import HueyException

from config.settings import Settings
from pipeline.kernel.enums import Stage
from workers.notifier import Notifier, WakeUp
from workers.queue import WorkerQueue


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
def calls():
    """What the tasks were called with."""
    return []


@pytest.fixture
def open_queue(calls):
    """Open the queue of a home, as each of its processes does."""
    opened = []

    def open_queue(settings):
        huey = WorkerQueue(settings)
        opened.append(huey)
        return SimpleNamespace(
            huey=huey, **{name: named(huey, name, priority) for name, priority in (("digest", 2), ("run_job", 0))}
        )

    def named(huey, name, priority):
        def task(*names):
            calls.append((name, *names))

        return huey.task(name=name, priority=priority)(task)

    yield open_queue
    for huey in opened:
        huey.storage.close()


@pytest.fixture
def queue(open_queue, queue_settings):
    queue = open_queue(queue_settings)
    queue.huey.flush()
    yield queue
    queue.huey.flush()


def drain(queue):
    while (task := queue.huey.dequeue()) is not None:
        queue.huey.execute(task)


def test_queued_messages_run_once_by_priority(queue, calls):
    queue.run_job("segment", "alpha")
    queue.digest("alpha", "embed")
    drain(queue)
    drain(queue)
    assert calls == [("digest", "alpha", "embed"), ("run_job", "segment", "alpha")]


def test_another_process_of_this_data_directory_reads_the_message(open_queue, queue, queue_settings, calls):
    queue.digest("alpha", "embed")
    other = open_queue(queue_settings)
    drain(other)
    assert calls == [("digest", "alpha", "embed")]


def test_queue_message_contains_only_names(queue):
    queue.digest("alpha", "embed")
    [message] = queue.huey.storage.enqueued_items()
    task = queue.huey.serializer.deserialize(message)
    assert task.args == ("alpha", "embed")
    assert not task.kwargs
    assert len(message) < 400


def test_message_of_another_data_directory_is_rejected(open_queue, queue, tmp_path, calls):
    foreign = open_queue(Settings(home=tmp_path / "elsewhere"))
    foreign.digest("alpha", "embed")
    [message] = foreign.huey.storage.enqueued_items()
    queue.huey.storage.enqueue(message)
    expect_refusal(queue)
    assert calls == []


def test_a_message_under_a_former_token_is_refused_and_later_ones_are_not(open_queue, queue, queue_settings, calls):
    queue.digest("alpha", "embed")
    queue_settings.paths.renew_token()
    expect_refusal(queue)
    late = open_queue(queue_settings)
    queue.digest("beta", "embed")
    drain(late)
    late.digest("gamma", "embed")
    drain(queue)
    assert calls == [("digest", "beta", "embed"), ("digest", "gamma", "embed")]


def test_a_tampered_message_is_refused(queue, calls):
    queue.digest("alpha", "embed")
    message = queue.huey.storage.dequeue()
    for place in (0, len(message) // 2, len(message) - 1):
        queue.huey.storage.enqueue(message[:place] + bytes([message[place] ^ 1]) + message[place + 1 :])
        expect_refusal(queue)
    assert calls == []


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a foreign pickle was opened",))


def test_a_plain_pickle_is_not_opened(queue, calls):
    queue.huey.storage.enqueue(pickle.dumps(Bomb()))
    expect_refusal(queue)
    assert calls == []


def expect_refusal(queue):
    try:
        task = queue.huey.dequeue()
    except (ValueError, HueyException):
        return
    assert task is None


def test_a_queue_file_that_is_deleted_comes_back(open_queue, tmp_path, calls):
    queue = open_queue(Settings(home=tmp_path / "home"))
    queue.digest("alpha", "embed")
    (tmp_path / "home" / "queue.sqlite").unlink()
    queue.digest("beta", "embed")
    late = open_queue(Settings(home=tmp_path / "home"))
    drain(late)
    assert calls == [("digest", "beta", "embed")]


def test_a_queue_leaves_no_trace_before_it_is_used(tmp_path):
    WorkerQueue(Settings(home=tmp_path / "home"))
    assert not (tmp_path / "home").exists()


def test_a_broken_queue_file_makes_way(open_queue, tmp_path, calls):
    home = tmp_path / "home"
    home.mkdir()
    (home / "queue.sqlite").write_bytes(b"no database" * 1000)
    queue = open_queue(Settings(home=home))
    queue.digest("alpha", "embed")
    drain(queue)
    assert calls == [("digest", "alpha", "embed")]


class Broker:
    """A broker that can be held up and notes what reaches it."""

    def __init__(self):
        self.heard = []
        self.errors = []
        self.may_hear = threading.Event()
        self.arrived = threading.Semaphore(0)
        self.broken = False

    def __call__(self, what):
        self.arrived.release()
        assert self.may_hear.wait(30)
        if self.broken:
            raise ConnectionError("no broker")
        self.heard.append(what)


@pytest.fixture
def broker():
    return Broker()


@pytest.fixture
def notifier(broker):
    notifier = Notifier(broker, broker.errors.append)
    yield notifier
    broker.may_hear.set()
    notifier.close()


def test_notifier_coalesces_messages_during_a_send(broker, notifier):
    notifier.notify("alpha", {Stage.EMBED})
    assert broker.arrived.acquire(timeout=10)
    for _ in range(100):
        notifier.notify("alpha", {Stage.EMBED})
        notifier.notify("beta", {None})
    broker.may_hear.set()
    notifier.close()
    assert broker.heard == [WakeUp("alpha", "embed"), WakeUp("alpha", "embed"), WakeUp("beta")]


def test_the_notifier_never_fails_a_write_and_reports_each_failure(broker, notifier):
    broker.broken = True
    broker.may_hear.set()
    notifier.notify("alpha", {Stage.EMBED})
    assert broker.arrived.acquire(timeout=10)
    broker.broken = False
    notifier.notify("beta", {None})
    notifier.close()
    assert broker.heard[-1:] == [WakeUp("beta")]
    assert all("the wake-up message of alpha failed: ConnectionError" in message for message in broker.errors)


def test_a_broken_broker_is_reported(broker, notifier):
    broker.broken = True
    broker.may_hear.set()
    notifier.notify("alpha", {None})
    notifier.close()
    assert broker.errors == ["the wake-up message of alpha failed: ConnectionError: no broker"]


def test_notifier_sends_pending_messages_on_close(broker):
    broker.may_hear.set()
    notifier = Notifier(broker, broker.errors.append)
    for number in range(50):
        notifier.notify(f"workspace-{number:02}", {None})
    notifier.close()
    assert broker.heard == sorted(broker.heard)
    assert len(broker.heard) == 50
