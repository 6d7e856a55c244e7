"""`reverie mcp --standalone`: a session over stdio with a stack that it starts and that ends with it."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from config.settings import load_settings
from tests.support.encoders import link_models
from tests.support.stack import free_port, wait_until
from web.stack.processes import SUPERVISOR, list_running

pytestmark = pytest.mark.timeout(300)

REVERIE = str(Path(sys.executable).parent / "reverie")


class Host:
    """A host that starts `reverie mcp --standalone` and speaks to it line by line."""

    def __init__(self, variables, folder, *options):
        self.process = subprocess.Popen(
            [REVERIE, *options, "mcp", "--standalone"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=variables,
            cwd=folder,
            text=True,
        )
        self._id = 0
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "ci", "version": "1"}}
        self.ask("initialize", client)

    def ask(self, method, params):
        self._id += 1
        request = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        self.process.stdin.write(f"{json.dumps(request)}\n")
        self.process.stdin.flush()
        while (answer := json.loads(self.process.stdout.readline())).get("id") != self._id:
            pass
        return answer["result"]

    def call(self, tool, **arguments):
        # A slow machine may need longer than one call waits.
        for _ in range(10):
            result = self.ask("tools/call", {"name": tool, "arguments": arguments})
            text = result["content"][0]["text"]
            if not result.get("isError") and "Not stored yet" not in text and "ask again" not in text:
                break
        assert not result.get("isError"), text
        return text

    def remember(self, *contents):
        return self.call("remember_batch", items=[{"content": content} for content in contents])

    def end(self):
        """Close standard input and return the exit code."""
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture
def variables(tmp_path, models):
    link_models(tmp_path / "home", models)
    named = {"REVERIE_HOME": str(tmp_path / "home"), "REVERIE_PORT": str(free_port()), "REVERIE_WORKER_PROCESSES": "1"}
    yield os.environ | named | {"HF_HUB_OFFLINE": "1"}
    subprocess.run([REVERIE, "down"], env=os.environ | named, capture_output=True, check=False)


@pytest.fixture
def running(variables):
    """Return the names of the running processes of the stack."""
    settings = load_settings(variables)
    return lambda: [process.name for process in list_running(settings)]


@pytest.fixture
def start(variables, tmp_path):
    """Start standalone hosts; kill those that are left."""
    hosts = []
    folder = tmp_path / "project"
    folder.mkdir()

    def run(*options):
        hosts.append(Host(variables, folder, *options))
        return hosts[-1]

    yield run
    for host in hosts:
        host.process.kill()
        host.process.communicate()


def test_the_stack_ends_with_its_session(start, running):
    host = start()
    assert host.remember("Staging listens on port 5433").startswith("created [")
    assert "port 5433" in host.call("recall", query="staging port")
    assert SUPERVISOR in running()
    assert host.end() == 0
    wait_until("the stack has ended", lambda: not running())


def test_stack_stops_with_a_killed_session_without_losing_writes(start, running):
    rng, written = random.Random(37), []
    host = start()
    for _ in range(rng.randint(2, 5)):
        written.append(f"Service n{len(written)}q listens on port {4000 + len(written)}")
        host.remember(written[-1])
    host.process.send_signal(signal.SIGKILL)
    host.process.wait()
    wait_until("the stack has ended", lambda: not running())
    host = start()
    for content in written:
        assert content in host.call("recall", query=content.split()[1])


def test_a_session_uses_the_stack_that_runs_and_leaves_it_running(start, running, variables):
    subprocess.run([REVERIE, "up", "--daemon"], env=variables, capture_output=True, check=True)
    host = start("-w", "default")
    assert host.remember("Staging listens on port 5433").startswith("created [")
    assert host.end() == 0
    subprocess.run([REVERIE, "-w", "default", "recall", "staging"], env=variables, capture_output=True, check=True)
    assert SUPERVISOR in running()


def test_another_session_starts_the_stack_again(start):
    first = start("-w", "default")
    first.remember("Staging listens on port 5433")
    second = start("-w", "default")
    assert "port 5433" in second.call("recall", query="staging port")
    assert first.end() == 0
    assert "port 5433" in second.call("recall", query="staging port")


def test_a_session_without_a_request_starts_and_leaves_nothing(start, running):
    host = start()
    assert host.end() == 0
    assert running() == []


def test_up_ends_with_a_process_that_is_gone_or_ends(variables):
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    up = subprocess.Popen([REVERIE, "up", "--exit-with-parent", str(other.pid)], env=variables, stdout=subprocess.PIPE)
    assert b"data directory" in up.stdout.readline()
    other.communicate()
    up.communicate(timeout=60)
    assert up.returncode == 0
    assert not psutil.pid_exists(other.pid)
    late = subprocess.run(
        [REVERIE, "up", "--exit-with-parent", str(other.pid)],
        env=variables,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert late.returncode in (0, -signal.SIGTERM)


def test_a_stack_in_the_background_does_not_end_with_a_process(variables):
    words = [REVERIE, "up", "--daemon", "--exit-with-parent", "1"]
    refused = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "excludes --daemon" in refused.stderr
