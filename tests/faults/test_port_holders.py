"""Another program has the server's port: real processes, found by name and never sent anything."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import closing

import pytest

from tests.fakes.command_line import run
from tests.support.stack import HOST, Stack, free_port, wait_until
from web.stack import own_server

# As an earlier version of Reverie answers, by its command line and its environment.
EARLIER = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = b'{"status": "ok", "version": "0.0.9", "encoder": "ready"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["REVERIE_PORT"])), Handler).serve_forever()
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "token").write_text("the-token")
    monkeypatch.setenv("REVERIE_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return home


@pytest.fixture
def start_earlier(tmp_path, monkeypatch):
    """Start an earlier version's server of a data directory; it ends with the test."""
    (tmp_path / "earlier" / "web").mkdir(parents=True)
    (tmp_path / "earlier" / "web" / "__main__.py").write_text(EARLIER)
    (tmp_path / "earlier" / "web" / "__init__.py").touch()
    port = free_port()
    monkeypatch.setenv("REVERIE_PORT", str(port))
    started = []

    def start(home):
        environment = {**os.environ, "REVERIE_HOME": str(home)}
        command = [sys.executable, "-m", "web"]
        started.append(subprocess.Popen(command, cwd=tmp_path / "earlier", env=environment))
        wait_until("it listens", lambda: listens(port))
        return started[0].pid

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def stack(tmp_path):
    """A stack without an encoder."""
    (tmp_path / "models").mkdir()
    with Stack(tmp_path / "home", tmp_path / "models") as stack:
        yield stack


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def test_the_reverie_of_another_directory_is_named_with_its_directory(home, start_earlier, tmp_path):
    pid = start_earlier(tmp_path / "other")
    said = run("recall", "anything", code=4).stderr
    assert f"(pid {pid})" in said
    assert f"is the Reverie of another data directory, {tmp_path / 'other'}, not of {home}; nothing was sent" in said
    assert f"stop it with `REVERIE_HOME={tmp_path / 'other'} reverie down`, or choose another port" in said
    assert f"the Reverie of {tmp_path / 'other'}, uses the port" in run("up", code=1).stderr


def test_an_earlier_version_of_the_own_server_is_to_be_restarted(home, start_earlier):
    pid = start_earlier(home)
    said = run("recall", "anything", code=4).stderr
    assert f"(pid {pid})" in said
    assert "it started with another token or an earlier version of Reverie; restart it: `reverie down`" in said


def test_the_own_server_may_take_its_time(stack, tmp_path, monkeypatch):
    for name in ("REVERIE_HOME", "REVERIE_PORT"):
        monkeypatch.setenv(name, stack.environment[name])
    stack.start("web")
    process = stack.running["web"]
    find = own_server.find_listening_process

    def find_and_let_go_on(*address):
        found = find(*address)
        process.send_signal(signal.SIGCONT)
        return found

    monkeypatch.setattr(own_server, "PROOF_WITHIN_S", 0.05)
    monkeypatch.setattr(own_server, "find_listening_process", find_and_let_go_on)
    monkeypatch.chdir(tmp_path)
    process.send_signal(signal.SIGSTOP)
    assert "created" in run("remember", "The deploy runs on Fridays").stdout


def test_what_hooks_noted_is_recorded_when_the_server_has_its_port_again(stack):
    note = stack.home / "unproven-server"
    note.write_text(f"1764100000.000 {HOST}:{stack.port}\n")
    stack.start("web")
    with closing(stack.client()) as asking:
        [said] = [line for line in asking.errors() if line.startswith("hooks: ")]
    assert f"the program at {HOST}:{stack.port} did not prove to be the server" in said
    assert not note.exists()
