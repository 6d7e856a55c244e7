"""A host that plays a session against the real stack, and against servers that are stopped, hung or broken."""

import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.features.workspaces.identify import identify
from tests.support.stack import Stack, wait_until

pytestmark = pytest.mark.timeout(300)

CLIENT = Path(__file__).parents[2] / "web" / "hooks" / "client.py"
SESSION = "6f1f0e6e-1e4b-4f6e-9d59-2f6a4f0c9a11"
# Nothing waits this long unless it is broken.
PATIENCE_S = 60


class FakeHost:
    """Send events as Claude Code sends them, each with the fields that it has there, and keep how long each took."""

    def __init__(self, port, token, cwd, home):
        self.port, self.token, self.cwd, self.home = port, token, str(cwd), str(home)
        self.took = {}

    def event(self, name, **fields):
        common = {
            "session_id": SESSION,
            "transcript_path": f"/home/ann/.claude/projects/p/{SESSION}.jsonl",
            "cwd": self.cwd,
            "permission_mode": "default",
            "hook_event_name": name,
        }
        return common | fields

    def send(self, name, **fields):
        """Run the hook of an event, which must end with 0 and say JSON or nothing; return the context, if any."""
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, str(CLIENT), "claude-code"],
            input=json.dumps(self.event(name, **fields)).encode(),
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
            env=os.environ | {"REVERIE_HOME": self.home, "REVERIE_PORT": str(self.port)},
        )
        self.took.setdefault(name, []).append((time.perf_counter() - began) * 1000)
        assert (done.returncode, done.stderr) == (0, b"")
        return self._context(name, done.stdout)

    def start(self, source):
        """Begin a session, or go on with one."""
        return self.send("SessionStart", source=source, model="a-model")

    def tool(self, name, given, *, ok=True, **fields):
        """Play a tool call: the event before it and the one after it; return the advice."""
        use = {"tool_name": name, "tool_input": given, "tool_use_id": "toolu_01", **fields}
        advice = self.send("PreToolUse", **use)
        if ok:
            self.send("PostToolUse", **use, tool_response={"stdout": "", "stderr": "", "interrupted": False})
        else:
            self.send("PostToolUseFailure", **use, error="Command failed with exit code 1", is_interrupt=False)
        return advice

    def _context(self, name, body):
        if not body:
            return None
        output = json.loads(body)["hookSpecificOutput"]
        assert output["hookEventName"] == name
        if name == "PreToolUse":
            assert set(output) == {"hookEventName", "permissionDecision", "permissionDecisionReason"}
            assert output["permissionDecision"] == "ask"
            return output["permissionDecisionReason"]
        assert set(output) == {"hookEventName", "additionalContext"}
        assert 0 < len(output["additionalContext"]) <= 10_000
        return output["additionalContext"]

    def report(self):
        for name, took in sorted(self.took.items()):
            print(f"{name:24} n {len(took):3}  p50 {statistics.median(took):7.2f}  max {max(took):7.2f} ms")


@pytest.fixture
def stack(tmp_path, models):
    # What is told is looked at here, not how soon: a busy machine may take its time.
    stack = Stack(tmp_path / "home", models, HOOK_BUDGET_MS="1500")
    stack.start("web", "worker")
    yield stack
    stack.stop()


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    return folder


PROMPTS = [
    ("Which port does billing listen on?", "port 8123"),
    ("thanks, looks great!", None),
    ("Which port does billing listen on?", None),
    ("Which database do the reports use?", "reports run on PostgreSQL"),
    ("hello there", None),
    ("How do I run the migrations?", "make migrate"),
    ("Who owns the invoices service?", "Grace owns the invoices"),
    ("ok", None),
    ("go on please", None),
    ("Where are the invoices rendered?", "templates/invoice.html"),
    ("What did we decide about the job queue?", "SQLite for the job queue"),
    ("yes", None),
    ("Which port does billing listen on again?", None),
    ("great, thank you", None),
    ("How are the nightly backups encrypted?", "age"),
    ("no", None),
    ("good morning", None),
    ("What is the retry limit of the webhook sender?", "seven times"),
    ("nice", None),
    ("bye for now", None),
]

MEMORIES = [
    {"content": "Billing listens on port 8123"},
    {"content": "The reports run on PostgreSQL 15 with a read replica"},
    {"content": "Run make migrate before make test, or the migrations fail", "kind": "lesson"},
    {"content": "Never run make wipe: it drops production", "kind": "lesson", "details": {"severity": "critical"}},
    {"content": "Grace owns the invoices service"},
    {"content": "Invoices are rendered from templates/invoice.html"},
    {"content": "We use SQLite for the job queue", "kind": "decision"},
    {"content": "Nightly backups are encrypted with age"},
    {"content": "The webhook sender retries seven times", "kind": "fact"},
]


@pytest.fixture
def client(stack, project):
    client = stack.client(identify(project).id)
    yield client
    client.close()


def test_simulated_session_receives_memories_and_records_its_work(stack, client, project):
    for memory in MEMORIES:
        assert client.call("POST", "/v1/memories", memory).status == 201
    stack.wait_for_encoder()
    wait_until("digested", lambda: not any(client.call("GET", "/v1/queue").body["pending"].values()))
    host = FakeHost(stack.port, client._headers["Authorization"].removeprefix("Bearer "), project, stack.home)

    brief = host.start("startup")
    assert "SQLite for the job queue" in brief
    assert "make migrate" in brief
    # What the start lists comes once more with the prompt that it is about.
    told: list[str] = []
    for number, (prompt, expected) in enumerate(PROMPTS):
        context = host.send("UserPromptSubmit", prompt=prompt, prompt_id=f"p{number}")
        if expected is None:
            assert context is None, prompt
        told.append(context or "")
        # What is about one question may have come with an earlier one; nothing comes twice.
        assert expected is None or sum(expected in text for text in told) == 1, (prompt, told)
        host.tool("Read", {"file_path": f"{project}/src/a.py"})
    assert sum(bool(text) for text in told) >= 5

    assert host.tool("Bash", {"command": "make migrate", "description": "Migrate"}) is None
    assert "drops production" in host.send("PreToolUse", tool_name="Bash", tool_input={"command": "make wipe"})
    host.send("UserPromptSubmit", prompt="the tests fail, please fix them", prompt_id="p20")
    host.tool("Bash", {"command": "make test"}, ok=False)
    host.tool("Edit", {"file_path": f"{project}/src/invoice.py", "old_string": "a", "new_string": "b"})
    host.tool("Bash", {"command": "make test"})
    host.tool("Grep", {"pattern": "x"}, agent_id="a-1", agent_type="Explore")
    host.send("SubagentStop", agent_id="a-1", agent_type="Explore", stop_hook_active=False)
    assert host.send("Stop", stop_hook_active=False, last_assistant_message="Fixed.") is None

    def list_kept():
        items = client.call("GET", "/v1/memories").body["items"]
        return [item["content"] for item in items if item["source"] == "ambient"]

    wait_until("the turn's result is kept", list_kept)
    assert list_kept() == ["Fixed: `make test` failed and passes now. Edited src/invoice.py."]

    assert host.send("PreCompact", trigger="auto", custom_instructions="") is None
    left_off = host.start("compact")
    assert left_off.startswith("Where this session left off, as its journal noted:\n")
    assert "- test “make test” (failed)\n- edit “src/invoice.py”\n- test “make test”\n" in left_off
    again = host.send("UserPromptSubmit", prompt="Which port does billing listen on?", prompt_id="p21")
    assert "port 8123" in again
    assert "- edit “src/invoice.py”" in host.start("resume")
    assert host.send("SessionEnd", reason="exit") is None

    assert client.errors() == []
    host.report()


@contextmanager
def _server(answer):
    """Serve each connection by a function of its socket, until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection, ended), daemon=True).start()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _hang(connection, ended):
    with connection:
        ended.wait(PATIENCE_S)


def _trickle(connection, ended):
    with connection:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 1000000\r\n\r\n{")
        while not ended.wait(0.05):
            try:
                connection.sendall(b" ")
            except OSError:
                return


def _say(raw):
    def answer(connection, _ended):
        with connection:
            connection.recv(65536)
            connection.sendall(raw)

    return answer


FAILING = {
    "hung": _hang,
    "trickling": _trickle,
    "500": _say(b"HTTP/1.0 500 Oops\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nOops"),
    "another program": _say(b"220 mail ESMTP ready\r\n"),
    "half an answer": _say(b'HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\n{"hookSpecificOutput": {'),
    "no JSON": _say(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    "silence": _say(b""),
}


@pytest.mark.parametrize("kind", FAILING)
def test_a_failing_server_is_passed_over_in_silence(tmp_path, kind):
    home = tmp_path / "home"
    home.mkdir()
    (home / "token").write_text("t" * 43)
    with _server(FAILING[kind]) as port:
        host = FakeHost(port, "t" * 43, tmp_path, home)
        assert host.start("startup") is None
        assert host.send("UserPromptSubmit", prompt="Which port does billing listen on?") is None
    host.report()
