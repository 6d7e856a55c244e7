"""Machines of a team, each with an empty home: a store on PostgreSQL, a queue on Redis, indexes on object storage."""

import contextlib
import http.client
import shutil
import subprocess
import uuid

import pytest

from config.declared import Secret
from config.settings import Settings
from pipeline.kernel.leadership import Leadership
from pipeline.kernel.store import leases
from pipeline.kernel.store.home_values import HomeValues
from pipeline.kernel.store.operations import Operations
from pipeline.kernel.store.stores import open_home
from tests.support.stack import HOST, Stack, free_port, wait_until

BUCKET = "team"
SAID = "The billing service listens on port 8123"


class Redis:
    """A server of Redis that is stopped and started again on its port."""

    def __init__(self, folder):
        self._folder, self._port, self._process = folder, free_port(), None
        self.url = f"redis://{HOST}:{self._port}/0"
        self.start()

    def start(self):
        command = ["redis-server", "--port", str(self._port), "--bind", HOST, "--save", "", "--dir", str(self._folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def stop(self):
        self._process.kill()
        self._process.wait()


@pytest.fixture
def redis(tmp_path):
    if shutil.which("redis-server") is None:
        pytest.skip("there is no redis-server on this machine")
    server = Redis(tmp_path)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def bucket(s3):
    s3.make_bucket(BUCKET)
    return s3


@pytest.fixture
def make_machine(tmp_path, models, redis, store_url, bucket, monkeypatch):
    """Make machines of one team; the first has a compiled encoder, and no other has anything."""
    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    made, vectors = [], f"s3://{BUCKET}/{uuid.uuid4().hex}"
    (tmp_path / "nothing").mkdir()

    def make():
        own = models if not made else tmp_path / "nothing"
        settings = {"STORE": store_url, "QUEUE_URL": redis.url, "VECTORS": vectors, "SWEEP_INTERVAL_S": "1"}
        made.append(Stack(tmp_path / f"machine-{len(made)}", own, **settings))
        return made[-1]

    yield make
    for stack in made:
        stack.stop()


def finds(client, text, states=("ok", "ok")):
    """Tell whether a question finds a text, by words and by meaning."""
    answer = client.recall(text, budget_ms=5000)
    reached = tuple(answer["channels"][name]["state"] for name in ("lexical", "dense"))
    return reached == states and any(hit["content"] == text for hit in answer["results"])


def test_second_machine_serves_all_memories_and_survives_a_queue_outage(make_machine, redis):
    first, second = make_machine(), make_machine()
    first.start("web", "worker", "scheduler")
    one = first.client()
    one.remember(SAID)
    first.wait_until_digested(one)
    second.start("web")
    other = second.client()
    # With an encoder that another machine has compiled.
    second.wait_for_encoder()
    wait_until("what the one was told, the other knows", lambda: finds(other, SAID))
    other.remember("Deploys of the shop run on Fridays")
    first.wait_until_digested(one)
    wait_until("what the other was told, the one knows", lambda: finds(one, "Deploys of the shop run on Fridays"))

    redis.stop()
    told = [f"Zebra number {number} sleeps in the attic" for number in range(6)]
    for number, text in enumerate(told):
        (one, other)[number % 2].remember(text)
    # What is written is found by its words at once, wherever it was written.
    assert all(any(hit["content"] == text for hit in one.recall(text)["results"]) for text in told)
    wait_until("the lost messages are told", lambda: any("wake-up message" in error for error in one.errors()))
    redis.start()
    first.wait_until_digested(one)
    for client in (one, other):
        wait_until("everybody knows everything", lambda client=client: all(finds(client, text) for text in told))
        client.close()


def test_a_browser_that_signed_in_at_one_front_is_signed_in_at_all(make_machine):
    fronts = make_machine(), make_machine()
    for front in fronts:
        front.start("web")
    with contextlib.closing(fronts[0].client()) as client:
        made = client.call("POST", "/v1/dashboard/links")
    assert made.status == 201, made
    link = made.body["url"]
    path = link.partition("/")[2].partition("/")[2].partition("/")[2]
    status, cookie = browse(fronts[1], f"/{path}")
    assert status == 303
    assert browse(fronts[0], f"/{path}")[0] == 401
    for front in fronts:
        assert browse(front, "/", cookie)[0] in (200, 302, 303)
        assert browse(front, "/")[0] == 401


def browse(stack, path, cookie=""):
    """Ask as a browser does; return the status and the cookie."""
    connection = http.client.HTTPConnection(HOST, stack.port, timeout=30)
    connection.request("GET", path, headers={"Cookie": cookie} if cookie else {})
    answer = connection.getresponse()
    answer.read()
    given = answer.getheader("Set-Cookie", "").partition(";")[0]
    connection.close()
    return answer.status, given


def test_single_scheduler_leads_and_another_takes_over(make_machine, store_url, monkeypatch):
    first, second = make_machine(), make_machine()
    first.start("web", "scheduler")
    second.start("scheduler")
    values = HomeValues(open_home(Settings(store=Secret(store_url))))

    def leader():
        return (values.get("lease.scheduler") or "").partition(" ")[2]

    led = wait_until("one leads", leader)
    first.kill("scheduler")
    second.kill("scheduler")
    # One that was killed leads until its time is up: here that is now.
    values.put("lease.scheduler", f"0 {led}")
    second.start("scheduler")
    assert wait_until("another one leads", lambda: leader() not in ("", led) and leader())
    values.tables.close()


def test_resigned_leader_is_replaced_at_once_and_a_late_leader_is_not(store_url, home):
    settings, operations = Settings(store=Secret(store_url)), Operations
    values = HomeValues(open_home(settings))
    one, other = Leadership(values, operations), Leadership(values, operations)
    assert one.ask()
    assert not one.ask()
    assert not other.ask()
    assert (one.is_held, other.is_held) == (True, False)
    one._lease._until = 0.0
    assert not one.is_held
    one.ask()
    one.resign()
    assert other.ask()
    assert not one.ask()
    assert (one.is_held, other.is_held) == (False, True)
    values.tables.close()
    assert 2 * one.interval_s < leases.LEASE_S
