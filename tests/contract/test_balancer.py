"""HAProxy takes what is shipped for it, and with that sends a write to one front only, once."""

import contextlib
import http.client
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.cluster import BALANCER, configure_balancer
from tests.support.programs import Program, find_program
from tests.support.stack import HOST, Client, free_port, wait_until

PROGRAM = find_program("haproxy")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no haproxy on this machine")


class FakeFront(ThreadingHTTPServer):
    """Answer health checks; end the connection without an answer to anything else, or answer all."""

    daemon_threads = True

    def __init__(self, *, answers: bool) -> None:
        super().__init__((HOST, 0), _Handler)
        self.answers = answers
        self.asked: list[str] = []

    def handle_error(self, *_arguments: object) -> None:
        """Say nothing of connections that the balancer breaks off."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeFront

    def do_POST(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/healthz":
            self.server.asked.append(f"{self.command} {self.path}")
            if not self.server.answers:
                self.close_connection = True
                return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


def run_front(running, *, answers):
    front = running.enter_context(FakeFront(answers=answers))
    thread = threading.Thread(target=front.serve_forever, daemon=True)
    thread.start()
    running.callback(front.shutdown)
    return front


@pytest.fixture
def balanced(tmp_path):
    """Two fronts, of which the first breaks every connection, and a client of the balancer before them."""
    with contextlib.ExitStack() as running:
        fronts = [run_front(running, answers=number == 1) for number in range(2)]
        port = free_port()
        file = tmp_path / "haproxy.cfg"
        ports = {f"front-{number}": front.server_port for number, front in enumerate(fronts)}
        # Both are asked in turn, whoever is less busy.
        file.write_text(configure_balancer(port, ports).replace("balance leastconn", "balance roundrobin"))
        client = running.enter_context(contextlib.closing(Client(port, "")))
        balancer = Program(
            (PROGRAM, "-db", "-f", str(file)), tmp_path / "log", lambda: ask(client, "GET", "/healthz") == 200
        )
        running.callback(balancer.kill)
        balancer.start()
        yield client, fronts


def ask(client, method, path):
    """Return the status of the answer; None where the connection ends without any, as it may when it is not new."""
    try:
        return client.call(method, path, {"query": "a"}).status
    except (OSError, http.client.HTTPException):
        return None


def test_the_shipped_configuration_is_taken_without_a_warning():
    done = subprocess.run([PROGRAM, "-c", "-f", str(BALANCER)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_write_without_an_answer_is_not_sent_again(balanced):
    client, fronts = balanced
    statuses = [ask(client, "POST", "/v1/memories") for _ in range(6)]
    assert statuses.count(200) == len(fronts[1].asked) == 3
    assert {status for status in statuses if status != 200} <= {502, None}
    assert len(fronts[0].asked) == 3


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/memories"), ("POST", "/v1/recall")])
def test_read_requests_are_retried_on_another_web_server(balanced, method, path):
    client, fronts = balanced
    assert [ask(client, method, path) for _ in range(6)] == [200] * 6
    assert fronts[0].asked
    assert len(fronts[1].asked) == 6


def test_balancer_without_web_servers_answers_503_with_retry_after(balanced):
    client, fronts = balanced
    for front in fronts:
        front.shutdown()
        front.server_close()
    reply = wait_until("the balancer has noticed", lambda: refusal(client))
    assert reply.body["status"] == 503
    assert reply.headers["Retry-After"] == "2"


def refusal(client):
    if ask(client, "GET", "/v1/memories") != 503:
        return None
    return client.call("GET", "/v1/memories")
