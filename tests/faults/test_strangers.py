"""Connections without a token, as many and as slow as they like, keep nobody else out."""

import contextlib
import http.client
import json
import resource
import socket

import pytest

from tests.support.stack import HOST, Stack, wait_until
from web.http.connections import MOST_CONNECTIONS

pytestmark = pytest.mark.timeout(300)

FEW_FILES = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
HEAD = b"POST /hooks/claude-code HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
SENT = {
    "nothing": b"",
    "half a line": b"GET /healt",
    "half a head": HEAD,
    "half a body": HEAD + b'Content-Length: 100000\r\n\r\n{"hook_event_name": ',
    "half a part": HEAD + b"Transfer-Encoding: chunked\r\n\r\nffff\r\n{",
    "a whole request": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "a refused one": b"GET /v1/stats HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
}


@pytest.fixture(scope="module")
def front(tmp_path_factory, models):
    with Stack(tmp_path_factory.mktemp("front") / "home", models) as stack:
        stack.start("web")
        yield stack


@pytest.fixture(autouse=True)
def _files():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[1], 8192), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextlib.contextmanager
def strangers(stack, count, sent):
    """Hold connections that sent something and nothing else."""
    with contextlib.ExitStack() as held:
        for _ in range(count):
            # Whoever was sent away may find that out while it sends.
            with contextlib.suppress(ConnectionError):
                connection = held.enter_context(socket.create_connection((HOST, stack.port), timeout=30))
                connection.sendall(sent)
        yield


def hook(stack, prompt):
    """Send an event of a host over a connection of its own, within the time that a host gives it."""
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": "/", "prompt": prompt}
    token = (stack.home / "token").read_text().strip()
    connection = http.client.HTTPConnection(HOST, stack.port, timeout=30)
    with contextlib.closing(connection):
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("POST", "/hooks/claude-code", json.dumps(event), headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status


@pytest.mark.parametrize("sent", SENT)
# Fewer connections than the server holds, and more.
@pytest.mark.parametrize("count", [120, 2 * MOST_CONNECTIONS])
def test_hooks_and_clients_are_answered(front, sent, count):
    with contextlib.closing(front.client()) as client:
        assert client.call("GET", "/v1/stats").status in (200, 404)
        with strangers(front, count, SENT[sent]):
            # Over a connection that was open before, and over new ones.
            assert client.call("GET", "/v1/workspaces").status == 200
            assert [hook(front, f"What listens on port {n}?") for n in range(5)] == [200] * 5
            assert front.is_healthy()


def test_few_files_are_enough(make_stack):
    stack = make_stack()
    stack.start("web", before=("-c", FEW_FILES))
    with contextlib.closing(stack.client()) as client:
        client.remember("The staging database listens on port 5433")
        for sent in SENT.values():
            with strangers(stack, 2 * MOST_CONNECTIONS, sent):
                assert client.call("GET", "/v1/workspaces").status == 200
                assert hook(stack, "Where does the staging database listen?") == 200
        # Of those who may ask, too, some are sent away rather than everybody.
        others = [stack.client() for _ in range(200)]
        for other in others:
            assert other.call("GET", "/v1/workspaces").status == 200
        assert hook(stack, "Where does the staging database listen?") == 200
        for other in others:
            other.close()
    assert "Too many open files" not in stack.tail("web", lines=1000)


def test_a_slow_client_is_disconnected(front):
    with socket.create_connection((HOST, front.port), timeout=60) as slow:
        slow.sendall(HEAD)
        slow.settimeout(0.2)

        def is_gone():
            # A byte each time: that something comes must not be enough.
            try:
                slow.sendall(b"x")
                return slow.recv(100) == b""
            except TimeoutError:
                return False
            except ConnectionError:
                return True

        wait_until("the slow one is gone", is_gone)
