"""`reverie mcp --standalone`: the files of the data directory are used in one process, which leaves nothing behind."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from config.process import STANDALONE, Role
from pipeline.bootstrap.web import WebContainer
from pipeline.errors import Conflict
from tests.fakes.encoder import HashEncoder
from tests.fakes.in_process import HeldEncoder, open_worker
from tests.support.served import serve_home
from tests.support.stack import wait_until
from web.client import Client
from web.mcp.digestion_thread import DigestionThread
from web.mcp.standalone import StandaloneServer, open_standalone

pytestmark = pytest.mark.timeout(180)

REVERIE = str(Path(sys.executable).parent / "reverie")
# Report every process that is started and every socket that is connected or waits for connections.
WATCHED = """
import sys
WATCHED = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system", "socket.bind",
           "socket.connect"}
sys.addaudithook(lambda event, values: event in WATCHED and print("SEEN", event, values, file=sys.stderr))
from web.cli import main
sys.argv = ["reverie", *sys.argv[1:]]
main()
"""


class Host:
    """A host that starts `reverie mcp --standalone` and speaks to it line by line."""

    def __init__(self, home, folder, *options, code=None):
        program = [REVERIE] if code is None else [sys.executable, "-c", code]
        self.process = subprocess.Popen(
            [*program, "mcp", "--standalone", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"REVERIE_HOME": str(home), "HF_HUB_OFFLINE": "1"},
            cwd=folder,
            text=True,
        )
        self._id = 0
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "ci", "version": "1"}}
        self.ask("initialize", client)
        self.tell({"method": "notifications/initialized"})

    def tell(self, message):
        self.process.stdin.write(f"{json.dumps({'jsonrpc': '2.0', **message})}\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self._id += 1
        self.tell({"id": self._id, "method": method, "params": params})
        while (answer := json.loads(self.process.stdout.readline())).get("id") != self._id:
            pass
        return answer["result"]

    def call(self, tool, **arguments):
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        text = result["content"][0]["text"]
        assert not result.get("isError"), text
        return text

    def remember(self, *contents):
        return self.call("remember_batch", items=[{"content": content} for content in contents])

    def end(self):
        """Close standard input; return the exit code and what the process wrote to standard error."""
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


@pytest.fixture
def folder(tmp_path):
    """A checkout of git that names no workspace."""
    made = tmp_path / "project"
    made.mkdir()
    subprocess.run(["git", "init", "-q", made], check=True)
    return made


@pytest.fixture
def start(home, folder):
    """Start standalone hosts on the home; kill those that are left."""
    hosts = []

    def run(*options, code=None):
        hosts.append(Host(home.home, folder, *options, code=code))
        return hosts[-1]

    yield run
    for host in hosts:
        host.process.kill()
        host.process.communicate()


@pytest.fixture
def open_server(home):
    """Open standalone servers in this process, with fake models; close them afterwards."""
    servers = []

    def run(encoder=HashEncoder, *, read_only=False):
        held = HeldEncoder(None if encoder is None else encoder())

        def open_fake(on_commit):
            worker = open_worker(home, on_commit)
            worker.encoders = held
            return worker

        digestion = DigestionThread(open_fake)
        container = WebContainer(home, digestion.notify)
        container.encoders = held
        server = StandaloneServer(container, digestion, lambda **_: "default", read_only=read_only)
        servers.append(server)
        server.start()
        return server

    yield run
    for server in servers:
        server.close()


def write(server, content):
    return server.call("POST", "/v1/memories", {"content": content})["id"]


def find(server, query):
    answer = server.call("POST", "/v1/recall", {"query": query, "budget_ms": 10_000})
    return [hit["id"] for hit in answer["results"]], answer


def waiting_stages(server):
    return {stage for stage, count in server.call("GET", "/v1/queue")["pending"].items() if count}


def digest_everything(server):
    wait_until("everything is digested", lambda: not waiting_stages(server))


def test_a_host_stores_and_recalls_without_a_process_and_without_a_port(start, home):
    host = start(code=WATCHED)
    process = psutil.Process(host.process.pid)
    assert host.remember("Staging listens on port 5433").startswith("created [")
    assert "port 5433" in host.call("recall", query="staging port")
    assert "port 5433" in host.call("prepare", message="Which port does staging listen on?")
    assert "5433" in host.call("set_fact", subject="staging", attribute="port", value="5433")
    assert process.children(recursive=True) == []
    assert process.net_connections(kind="inet") == []
    code, errors = host.end()
    assert code == 0, errors
    # The import of spaCy binds a socket once to find out whether there is IPv6, and closes it.
    allowed = ("/git'", "('::1', 0)")
    started = [line for line in errors.splitlines() if line.startswith("SEEN") and not any(a in line for a in allowed)]
    assert started == []
    assert not any((home.home / f"{role}.pid").exists() for role in ("up", "web", "scheduler", STANDALONE))


def test_no_acknowledged_write_is_lost_when_the_process_is_killed(start):
    rng, written = random.Random(37), []
    for _ in range(3):
        host = start()
        for _ in range(rng.randint(1, 6)):
            written.append(f"Service n{len(written)}q listens on port {4000 + len(written)}")
            host.remember(written[-1])
        host.process.send_signal(signal.SIGKILL)
        host.process.wait()
    host = start()
    for content in written:
        assert content in host.call("recall", query=content.split()[1])
    assert host.end()[0] == 0


def test_a_stack_and_a_session_use_the_same_files(start, home):
    with serve_home(home) as port, Client(f"http://127.0.0.1:{port}", home.paths.token()) as client:
        host = start("-w", "default")
        client.remember({"content": "Staging listens on port 5433"})
        assert "port 5433" in host.call("recall", query="staging port")
        host.remember("Billing listens on port 8123")
        found = client.recall({"query": "billing port"})
        assert found["results"][0]["content"] == "Billing listens on port 8123"
        assert host.end()[0] == 0
        client.remember({"content": "Search listens on port 9200"})
    assert "port 9200" in start("-w", "default").call("recall", query="search port")


def test_what_it_writes_is_found_at_once_and_digested_in_the_background(open_server):
    server = open_server()
    memory = write(server, "Staging listens on port 5433")
    assert find(server, "staging port")[0] == [memory]
    digest_everything(server)
    found, answer = find(server, "staging port")
    assert (found, answer["degraded"]) == ([memory], False)
    assert answer["channels"]["dense"]["state"] == "ok"


def test_closing_it_leaves_no_thread(open_server):
    before = set(threading.enumerate())
    server = open_server()
    write(server, "Staging listens on port 5433")
    digest_everything(server)
    assert set(threading.enumerate()) - before
    server.close()
    assert set(threading.enumerate()) - before == set()


def test_without_an_encoder_the_memory_is_found_by_its_words_and_waits_for_vectors(open_server):
    server = open_server(encoder=None)
    memory = write(server, "Staging listens on port 5433")
    wait_until("the names are found", lambda: "entities" not in waiting_stages(server))
    found, answer = find(server, "staging port")
    assert (found, answer["degraded"]) == ([memory], True)
    assert "embed" in waiting_stages(server)
    assert server.call("GET", "/v1/errors")["items"] == []
    server.close()
    later = open_server()
    write(later, "Billing listens on port 8123")
    digest_everything(later)
    # Also what waited.
    assert find(later, "staging port")[1]["degraded"] is False


def test_two_sessions_digest_each_memory_once(open_server):
    first, second = open_server(), open_server()
    ids = [write(server, f"Service n{n}q listens on port {n}") for n in range(10) for server in (first, second)]
    digest_everything(first)
    assert len(set(ids)) == 10
    assert sorted(find(first, "service port")[0]) == sorted(find(second, "service port")[0])
    assert first.call("GET", "/v1/errors")["items"] == []


def test_its_events_can_be_followed(open_server):
    server = open_server()
    blocks = server.events(None)
    start = next(blocks).id
    memory = write(server, "Staging listens on port 5433")
    assert next(block.data for block in blocks if memory in block.data)
    blocks.close()
    assert next(block.data for block in server.events(start) if memory in block.data)


def test_a_purge_is_finished_in_the_background(open_server, home):
    server = open_server()
    memory = write(server, "The passphrase of the vault is correct horse battery")
    digest_everything(server)
    server.call("DELETE", f"/v1/memories/{memory}", query={"hard": "true"})
    digest_everything(server)
    server.close()
    files = [file for file in home.home.rglob("*") if file.is_file()]
    assert [file for file in files if b"correct horse battery" in file.read_bytes()] == []


def test_a_read_only_session_neither_stores_nor_digests(open_server):
    server = open_server()
    memory = write(server, "Staging listens on port 5433")
    server.close()
    reader = open_server(read_only=True)
    with pytest.raises(Conflict, match="read-only"):
        write(reader, "Billing listens on port 8123")
    assert find(reader, "staging port")[0] == [memory]
    assert "digestion" not in {thread.name for thread in threading.enumerate()}


def test_it_does_not_start_while_a_command_replaces_files(home):
    role = Role(home.home, STANDALONE)
    role.take()
    try:
        with pytest.raises(Conflict, match="replacing files"):
            open_standalone(home, lambda **_: "default")
    finally:
        role.release()


def test_a_command_that_replaces_files_waits_for_the_session(start, home, folder):
    host = start("-w", "work")
    host.remember("Staging listens on port 5433")
    variables = os.environ | {"REVERIE_HOME": str(home.home)}
    delete = [REVERIE, "workspace", "delete", "work", "--yes"]
    refused = subprocess.run(delete, env=variables, cwd=folder, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert f"pid {host.process.pid}" in refused.stderr
    assert host.end()[0] == 0
    subprocess.run(delete, env=variables, cwd=folder, capture_output=True, check=True)


def test_a_data_directory_that_cannot_be_used_is_reported_to_the_model(start, home):
    (home.home / "workspaces").write_text("no folder")
    host = start()
    result = host.ask("tools/call", {"name": "recall", "arguments": {"query": "staging"}})
    assert result["isError"]
    assert str(home.home) in result["content"][0]["text"]
    assert host.end()[0] == 0
