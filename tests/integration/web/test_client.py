import http.server
import json
import socket
import threading

import pytest

from config.settings import load_settings
from pipeline.kernel.errors import (
    Conflict,
    ExtraMissing,
    InvalidField,
    MalformedRequest,
    NotFound,
    ServerUnreachable,
    StoreUnavailable,
)
from pipeline.kernel.http.problems import ServerProblem
from tests.fakes.local_server import LocalServer
from web.http.client import Client


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("Content-Length", 0))
        self.server.seen.append((self.client_address, self.command, self.path, self.headers, self.rfile.read(length)))
        status, media_type, body = self.server.canned
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = answer  # noqa: N815 - the names that http.server looks for

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.seen = []
        server.canned = (200, "application/json", {})
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def client(server):
    with Client(server.url, "secret", "mine", timeout_s=5) as client:
        yield client


def test_it_sends_token_workspace_and_body(server, client):
    server.canned = (201, "application/json", {"id": "1", "outcome": "created"})
    assert client.remember({"content": "Grüße"})["outcome"] == "created"
    _, method, path, headers, body = server.seen[0]
    assert (method, path) == ("POST", "/v1/memories")
    assert headers["Authorization"] == "Bearer secret"
    assert headers["X-Reverie-Workspace"] == "mine"
    assert headers["Content-Type"] == "application/json"
    assert json.loads(body) == {"content": "Grüße"}


def test_calls_share_one_connection(server, client):
    for _ in range(3):
        client.health()
    assert len({address for address, *_ in server.seen}) == 1


def test_a_query_and_another_workspace_are_sent(server, client):
    client.errors(limit=7)
    client.queue("other")
    assert server.seen[0][2] == "/v1/errors?limit=7"
    assert server.seen[1][3]["X-Reverie-Workspace"] == "other"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, MalformedRequest),
        (404, NotFound),
        (409, Conflict),
        (503, StoreUnavailable),
        (401, ServerProblem),
        (500, ServerProblem),
        (501, ExtraMissing),
    ],
)
def test_a_problem_becomes_a_typed_error(server, client, status, kind):
    problem = {"type": "t", "title": "T", "status": status, "detail": "what is wrong", "errors": []}
    server.canned = (status, "application/problem+json", problem)
    with pytest.raises(kind, match="what is wrong"):
        client.stats()


def test_rejected_fields_are_named(server, client):
    problem = {"title": "T", "detail": "d", "errors": [{"loc": "k", "msg": "too large"}]}
    server.canned = (422, "application/problem+json", problem)
    with pytest.raises(InvalidField, match="k: too large") as caught:
        client.recall({"query": "x", "k": 1000})
    assert [(e.loc, e.msg) for e in caught.value.errors] == [("k", "too large")]


@pytest.mark.parametrize(
    "canned",
    [(200, "text/html", b"<html>"), (404, "application/json", {"detail": "x"}), (200, "application/json", [1])],
)
def test_a_stranger_at_the_port_is_recognised(server, client, canned):
    server.canned = canned
    with pytest.raises(ServerProblem, match="not a Reverie server"):
        client.stats()


def test_no_server_says_how_to_start_one():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    with Client(url) as client, pytest.raises(ServerUnreachable, match="reverie up"):
        client.health()


def test_a_server_that_hangs_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            Client(url, timeout_s=0.05) as client,
            pytest.raises(ServerUnreachable, match="closed the connection before it answered"),
        ):
            client.health()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:7190"),
        ("0.0.0.0", "http://127.0.0.1:7190"),
        ("::", "http://[::1]:7190"),
        ("::1", "http://[::1]:7190"),
    ],
)
def test_settings_url_is_reachable_for_any_bind_address(tmp_path, host, url):
    settings = load_settings({"REVERIE_HOME": str(tmp_path), "REVERIE_HOST": host, "REVERIE_PORT": "7190"})
    assert settings.url == url


def test_the_token_is_read_and_never_made(tmp_path):
    settings = load_settings({"REVERIE_HOME": str(tmp_path / "home")})
    Client.from_settings(settings).close()
    assert not (tmp_path / "home").exists()


def test_a_new_token_is_sent_from_the_next_call_on(tmp_path):
    settings = load_settings({"REVERIE_HOME": str(tmp_path / "home")})
    first = settings.paths.token()
    with LocalServer(settings.paths.root, Handler) as server, Client.from_settings(settings) as client:
        server.seen, server.canned = [], (200, "application/json", {})
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        client.health()
        second = settings.paths.renew_token()
        client.health()
        server.shutdown()
        thread.join()
    assert [call[3]["Authorization"] for call in server.seen] == [f"Bearer {first}", f"Bearer {second}"]


@pytest.mark.parametrize(
    ("loc", "call"),
    [
        ("body", lambda client: client.remember({"content": "caf\udce9"})),
        ("body", lambda client: client.recall({"query": "caf\udce9"})),
        ("path", lambda client: client.memory("caf\udce9")),
        ("around", lambda client: client.graph("caf\udce9", 1, 10)),
    ],
)
def test_invalid_utf8_is_rejected_before_sending(server, client, loc, call):
    with pytest.raises(InvalidField, match=f"^{loc}: is not valid UTF-8$"):
        call(client)
    assert server.seen == []
