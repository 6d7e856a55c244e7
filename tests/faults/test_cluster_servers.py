"""What fronts and workers do while a server that they stand on is gone, is slow, refuses, or is of a later version."""

import contextlib
import http.client
import itertools
import threading
from urllib.parse import urlsplit

import pytest

from tests.support.cluster import Cluster, list_missing_programs
from tests.support.gate import gate_before
from tests.support.stack import HOST, wait_until
from tests.support.witness import Witness

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(missing := list_missing_programs()), reason=f"this machine lacks {', '.join(missing)}"),
]

_numbers = itertools.count(1)


def words():
    """Return a text that no other test writes, and the word in it that no other text has."""
    token = f"token{next(_numbers)}q7"
    return f"{token}: the billing service keeps its retry budget in config/retries.toml", token


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, models):
    with contextlib.ExitStack() as running:
        cluster = running.enter_context(Cluster(tmp_path_factory.mktemp("servers"), models, workers=1))
        gate = running.enter_context(gate_before(urlsplit(cluster.s3.endpoint).port))
        for machine in cluster.machines.values():
            machine.stack.environment["AWS_ENDPOINT_URL"] = f"http://{HOST}:{gate.port}"
        cluster.start()
        for front in cluster.list_fronts():
            front.wait_for_encoder()
        cluster.gate = gate
        yield cluster


@pytest.fixture
def client(cluster):
    with contextlib.closing(cluster.client()) as client:
        if client.call("GET", "/v1/queue").status == 404:
            client.remember("Something to begin with.")
        wait_until_digested(cluster, client)
        yield client


def wait_until_digested(cluster, client):
    def drained():
        queue = client.call("GET", "/v1/queue").body
        assert not any(queue["dead"].values()), queue
        return not any(queue["pending"].values())

    try:
        wait_until("everything is digested", drained, 90)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{client.errors()[:10]}\n{cluster.read_logs()}") from None


def finds(client, token, memory_id):
    answer = client.recall(token, k=3)
    assert answer["channels"]["lexical"]["state"] == "ok"
    return answer["results"][0]["id"] == memory_id


def test_without_redis_memories_are_found_and_digested_later(cluster, client):
    broker = cluster.parts["redis"]
    broker.kill()
    try:
        written = {client.remember(text): token for text, token in (words() for _ in range(5))}
        assert all(finds(client, token, memory_id) for memory_id, token in written.items())
        assert any("wake-up message" in line for line in wait_until("the error log says so", client.errors))
    finally:
        broker.start()
    wait_until_digested(cluster, client)


def test_with_slow_object_storage_memories_are_found_by_words(cluster, client):
    cluster.gate.delay_s = 0.1
    try:
        text, token = words()
        memory_id = client.remember(text)
        assert finds(client, token, memory_id)
        wait_until_digested(cluster, client)
    finally:
        cluster.gate.delay_s = 0.0


def test_while_object_storage_rejects_requests_nothing_is_dead_lettered(cluster, client):
    cluster.gate.close()
    try:
        text, token = words()
        memory_id = client.remember(text)
        assert finds(client, token, memory_id)
        wait_until("a worker has tried in vain", lambda: any("embed" in line for line in client.errors()))
        assert client.call("GET", "/v1/queue").body["pending"]["embed"]
    finally:
        cluster.gate.open()
    wait_until_digested(cluster, client)


def test_without_postgres_writes_get_503_and_acknowledged_writes_survive(cluster, client):
    acknowledged, refused, stop = {}, [], threading.Event()

    def write():
        with contextlib.closing(cluster.client()) as writer:
            while not stop.is_set():
                text, _ = words()
                reply = writer.call("POST", "/v1/memories", {"content": text})
                if reply.status == 201:
                    acknowledged[reply.body["id"]] = text
                else:
                    refused.append(reply)
                stop.wait(0.05)

    writing = threading.Thread(target=write, daemon=True)
    writing.start()
    try:
        wait_until("something was written", lambda: len(acknowledged) > 3)
        cluster.postgres.kill()
        wait_until("somebody was refused", lambda: refused)
        assert client.call("POST", "/v1/recall", {"query": "retry budget"}).status == 503
        # Fronts stay: to restart them would help nobody.
        assert all(front.is_healthy() for front in cluster.list_fronts())
        cluster.postgres.start()
        before = len(acknowledged)
        wait_until("writing goes on", lambda: len(acknowledged) > before + 3)
    finally:
        stop.set()
        writing.join(30)
    assert {reply.status for reply in refused} == {503}
    assert all("Retry-After" in reply.headers for reply in refused)
    stored = dict(Witness(cluster.postgres).rows("SELECT id, content FROM memory"))
    assert {memory_id: stored.get(memory_id) for memory_id in acknowledged} == acknowledged
    wait_until_digested(cluster, client)


def test_where_a_later_version_was_this_one_refuses_to_write_and_says_why(cluster, client):
    witness = Witness(cluster.postgres)
    text, token = words()
    witness.do("INSERT INTO migration VALUES ('p999_of_a_later_version')")
    try:
        reply = client.call("POST", "/v1/memories", {"content": text})
        assert reply.status == 503
        assert "another version of Reverie" in reply.body["detail"]
        with cluster.add("front", "front-of-before").stack as late:
            late.launch("web")
            answer = wait_until("it answers or has ended", lambda: _say_of(late))
            assert "another version of Reverie" in answer
    finally:
        witness.do("DELETE FROM migration WHERE name = 'p999_of_a_later_version'")
        del cluster.machines["front-of-before"]
    assert finds(client, token, client.remember(text))


def _say_of(stack):
    """Return what a front says that was just started: to a reader, or at its end."""
    if stack.running["web"].poll() is not None:
        return stack.tail("web")
    with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(stack.client()) as client:
        return client.call("GET", "/v1/queue").body["detail"]
    return None
