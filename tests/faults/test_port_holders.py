"""The socket of the server and the holder of its port, with real processes: killed, stopped, and found by name."""

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

import pytest

from tests.fakes.command_line import run
from tests.support.stack import HOST, Stack, free_port, wait_until
from web.http.local_connection import SOCKET, connect

# The web server of another data directory, by its command line and its environment.
OTHER = """
import http.server, os
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["REVERIE_PORT"])), None).serve_forever()
"""


@pytest.fixture
def stack(tmp_path, monkeypatch):
    """A stack without an encoder."""
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    with Stack(tmp_path / "home", tmp_path / "models") as stack:
        for name in ("REVERIE_HOME", "REVERIE_PORT"):
            monkeypatch.setenv(name, stack.environment[name])
        yield stack


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def test_the_reverie_of_another_directory_is_named_with_its_directory(tmp_path, monkeypatch):
    (tmp_path / "other" / "web").mkdir(parents=True)
    (tmp_path / "other" / "web" / "__main__.py").write_text(OTHER)
    (tmp_path / "other" / "web" / "__init__.py").touch()
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("REVERIE_PORT", str(free_port()))
    environment = os.environ | {"REVERIE_HOME": str(tmp_path / "other")}
    process = subprocess.Popen([sys.executable, "-m", "web"], cwd=tmp_path / "other", env=environment)
    try:
        wait_until("it listens", lambda: listens(int(os.environ["REVERIE_PORT"])))
        said = run("up", code=1).stderr
    finally:
        process.kill()
        process.wait()
    assert f"(pid {process.pid}), the Reverie of {tmp_path / 'other'}, uses the port" in said


def test_the_own_server_may_take_its_time(stack):
    stack.start("web")
    process = stack.running["web"]
    process.send_signal(signal.SIGSTOP)
    threading.Timer(1.0, process.send_signal, [signal.SIGCONT]).start()
    assert "created" in run("remember", "The deploy runs on Fridays").stdout


def can_connect(stack):
    try:
        connect(str(stack.home), time.monotonic() + 5).close()
    except ConnectionRefusedError:
        return False
    return True


def test_the_socket_of_a_killed_server_is_replaced_by_the_next_one_only(stack):
    path = stack.home / SOCKET
    stack.start("web")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    # Another server of the same directory has not its lock, and ends.
    command = [sys.executable, "-m", "web"]
    second = subprocess.run(command, env=stack.environment, capture_output=True, check=False)
    assert b"web is already running" in second.stderr
    assert can_connect(stack)
    stack.kill("web")
    assert path.is_socket()
    assert not can_connect(stack)
    stack.start("web")
    assert can_connect(stack)
    stack.stop()
    assert not path.exists()
