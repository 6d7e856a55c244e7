"""What a person's token may ask in a while, alone and among several servers; the home's token may ask anything."""

import contextlib
import subprocess

import pytest

from config.settings import Settings
from pipeline.kernel.errors import LimitReached
from pipeline.kernel.records.people import Caller, Person
from tests.fakes.client import CheckedClient
from tests.fakes.in_process import fast_settings, open_web
from tests.fakes.people import PersonClient, add_person
from tests.support.proxies import is_installed
from tests.support.stack import free_port, wait_until
from web.http.app import create_app
from web.http.limits import REST_S, Limits

TEAM = "team"
ADA = Caller(Person("ada", "Ada"), "token-1", "person")
BOB = Caller(Person("bob", "Bob"), "token-2", "person")


@contextlib.contextmanager
def opened(home, **settings):
    container = open_web(fast_settings(home, **settings))
    try:
        app = create_app(container)
        owner = CheckedClient(app, container.token)
        owner.write("The team meets at noon", workspace=TEAM)
        yield (
            owner,
            lambda name: PersonClient(app, container, add_person(container, name, **{TEAM: "writer"}), TEAM),
            container,
        )
    finally:
        container.close()


def is_limited(answer, detail):
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["Retry-After"]) <= 120
    assert detail in answer.get_json()["detail"]
    return True


def test_requests_are_counted_by_token(tmp_path):
    with opened(tmp_path / "home", limit_requests=3) as (owner, join, _container):
        # The client reads the document with the home's token.
        ada, bob = join("Ada"), join("Bob")
        assert [ada.get("/v1/stats").status_code for _ in range(3)] == [200] * 3
        assert is_limited(ada.get("/v1/stats"), "3 requests a minute")
        assert bob.get("/v1/stats").status_code == 200
        assert all(owner.get("/v1/stats", workspace=TEAM).status_code == 200 for _ in range(5))
        told = owner.get("/metrics").get_data(as_text=True)
        assert 'reverie_limit_hits_total{limit="requests"} 1.0' in told
        assert 'reverie_caller_requests_total{caller="person",outcome="limited"} 1.0' in told
        assert 'reverie_caller_requests_total{caller="person",outcome="answered"} 4.0' in told


def test_a_call_of_a_tool_counts_once(tmp_path):
    ask = {"name": "recall", "arguments": {"query": "When does the team meet?"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ask}
    with opened(tmp_path / "home", limit_requests=3) as (_owner, join, _container):
        ada, accept = join("Ada"), {"Accept": "application/json, text/event-stream"}
        told = [ada.post("/mcp", message, headers=accept) for _ in range(3)]
        assert ["meets at noon" in one.get_data(as_text=True) for one in told] == [True] * 3
        assert is_limited(ada.post("/mcp", message, headers=accept), "3 requests a minute")


def test_byte_limit_counts_bodies_and_rejects_the_excess_unstored(tmp_path):
    with opened(tmp_path / "home", limit_bytes=3000) as (owner, join, _container):
        ada = join("Ada")
        assert ada.post("/v1/memories", {"content": "a" * 1000 + " first"}).status_code == 201
        assert is_limited(ada.post("/v1/memories", {"content": "b" * 2500 + " second"}), "3000 bytes a minute")
        assert ada.get("/v1/stats").status_code == 200
        kept = owner.get("/v1/memories", workspace=TEAM).get_json()["items"]
        assert [one["content"][:5] for one in kept] == ["aaaaa", "The t"]


def test_where_much_waits_people_are_put_off_until_less_does(tmp_path):
    with opened(tmp_path / "home", limit_queue=2) as (owner, join, _container):
        ada = join("Ada")
        # The owner's memory waits to be embedded and read for entities.
        assert is_limited(ada.post("/v1/memories", {"content": "One more"}), "are already pending in team")
        assert ada.recall("noon")["results"]
        assert owner.write("The owner writes on", workspace=TEAM)


def test_the_dashboard_says_it_on_a_page(tmp_path):
    with opened(tmp_path / "home", limit_requests=1) as (_owner, join, _container):
        ada = join("Ada")
        assert ada.browser().get("/", headers=ada.auth).status_code in (200, 404)
        page = ada.browser().get("/", headers=ada.auth)
        assert page.status_code == 429
        assert page.mimetype == "text/html"
        assert int(page.headers["Retry-After"]) >= 1


def test_limit_of_zero_is_unlimited(tmp_path):
    limits = Limits(Settings(home=tmp_path, limit_requests=0, limit_bytes=0, limit_queue=0), pytest.fail)
    for _ in range(100):
        limits.take(ADA, 10**9)


@pytest.fixture
def redis(tmp_path):
    if not is_installed("redis-server"):
        pytest.skip("no redis-server on this machine")
    port = free_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--dir", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def is_up():
        from redis import Redis, RedisError

        with contextlib.suppress(RedisError), contextlib.closing(Redis(port=port)) as client:
            return client.ping()

    wait_until("Redis answers", is_up)
    yield f"redis://127.0.0.1:{port}/0", process
    process.kill()
    process.wait()


def test_rate_limits_count_across_servers_with_redis(tmp_path, redis):
    url, process = redis
    problems, clock = [], [0.0]
    settings = Settings(home=tmp_path, queue_url=url, limit_requests=4)
    one, two = (Limits(settings, problems.append, lambda: clock[0]) for _ in range(2))
    for server in (one, two, one, two):
        server.take(ADA, 0)
    for server in (one, two):
        with pytest.raises(LimitReached) as caught:
            server.take(ADA, 0)
        assert 1 <= caught.value.retry_after_s <= 120
        server.take(BOB, 0)
    process.kill()
    process.wait()
    for _ in range(4):
        one.take(ADA, 0)
    with pytest.raises(LimitReached):
        one.take(ADA, 0)
    # It was asked once, and then left alone for a while.
    assert len(problems) == 1
    assert "Redis is unreachable" in problems[0]
    clock[0] += REST_S
    two.take(ADA, 0)
    assert len(problems) == 2
