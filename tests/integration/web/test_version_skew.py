"""A hook client and a server with different code: the event is answered, and the older server is replaced."""

import json
import os
import sys

import pytest
from click.testing import CliRunner

from pipeline.kernel.errors import ServerUnreachable
from tests.fakes.command_line import run, serve_app
from web.cli import cli
from web.hooks import client
from web.stack import detached, processes
from web.stack.processes import Running
from web.stack.stack import UP, Stack, StackState
from web.version import BUILD, INSTALLED_IN, VERSION

FOLDER = BUILD.partition("-")[0]
OLDER, OTHER = f"{FOLDER}-1", "0123456789ab-1"


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    monkeypatch.setattr(client, "WITHIN_S", 20.0)


@pytest.fixture
def started(monkeypatch):
    commands = []
    monkeypatch.setattr(
        detached, "start_detached", lambda command, variables, **_: commands.append((command, variables))
    )
    return commands


@pytest.fixture
def send(container, home, monkeypatch):
    """Let the hook client send an event to the server; returns the answer."""
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))

        def post(prompt, session="s1"):
            event = {"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": "", "prompt": prompt}
            monkeypatch.setattr(client, "read_event", lambda: json.dumps(event).encode())
            return client._answer(["claude-code"])

        yield post


def list_errors(container):
    return [error.message for error in container.operations.errors(workspace=None, limit=10)]


def test_equal_builds_start_and_write_nothing(send, container, started):
    assert b"dark mode" in send("Remember that: dark mode is the default of the shop")
    assert (started, list_errors(container)) == ([], [])


def test_an_older_server_answers_and_is_then_replaced_once(send, container, home, monkeypatch, started):
    monkeypatch.setattr(client, "identify_build", lambda: f"1 {INSTALLED_IN}")
    assert b"dark mode" in send("Remember that: dark mode is the default of the shop")
    for number in range(3):
        send("Remember that: dark mode is the default of the shop", f"s{number}")
    [(command, variables)] = started
    assert command == [sys.executable, "-I", "-m", "reverie", "up", "--daemon", "--replace"]
    assert variables["REVERIE_HOME"] == str(home.home)
    # A hook may start the stack as soon as ever.
    client.start(str(home.home), {}, again_s=-1)
    assert len(started) == 2
    assert list_errors(container) == []


def test_nothing_is_replaced_while_the_stack_starts(send, home, monkeypatch, started):
    monkeypatch.setattr(client, "identify_build", lambda: f"1 {INSTALLED_IN}")
    held = client.take_lock(str(home.home), client.START_LOCK)
    assert b"dark mode" in send("Remember that: dark mode is the default of the shop")
    os.close(held)
    assert started == []


def test_another_installation_is_reported_once_with_the_command(send, container, monkeypatch, started):
    monkeypatch.setattr(client, "identify_build", lambda: "1 /opt/other/bin")
    for number in range(2):
        send("Remember that: dark mode is the default of the shop", f"s{number}")
    assert started == []
    [error] = list_errors(container)
    assert "`/opt/other/bin/reverie up --daemon`" in error
    assert "another installation of Reverie than the server" in run("logs", "errors").stdout
    assert "another installation of Reverie than the server" in run("status").stdout


def test_a_client_that_names_no_build_is_answered(send, container, monkeypatch, started):
    monkeypatch.setattr(client, "identify_build", lambda: "")
    assert b"dark mode" in send("Remember that: dark mode is the default of the shop")
    assert (started, list_errors(container)) == ([], [])


def run_doctor():
    found = CliRunner().invoke(cli, ["--json", "doctor"])
    return {check["check"]: check for check in json.loads(found.stdout)["checks"]}


class Process:
    """A supervisor of a test."""

    def __init__(self, words, terminal=None):
        self._words, self._terminal, self.pid = words, terminal, 1

    def terminal(self):
        return self._terminal

    def cmdline(self):
        return self._words


BACKGROUND = [sys.executable, *UP]


@pytest.fixture
def stack(monkeypatch, home):
    """A stack with a supervisor, which `stop_all` stops; returns what was stopped."""
    state = {"running": [], "stopped": [], "older": True}
    monkeypatch.setattr(processes, "list_running", lambda _settings: list(state["running"]))
    monkeypatch.setattr("web.http.client.Client.health", lambda _client: {"build": OLDER if state["older"] else BUILD})

    def stop(_settings):
        state["stopped"], state["running"] = state["running"], []

    monkeypatch.setattr(processes, "stop_all", stop)
    return state


@pytest.mark.parametrize(
    ("words", "terminal", "older", "stops"),
    [
        (BACKGROUND, None, True, True),
        (BACKGROUND, None, False, False),
        (BACKGROUND, "/dev/pts/1", True, False),
        ([sys.executable, "/opt/bin/reverie", "team", "serve"], None, True, False),
        (["/opt/other/bin/python", *BACKGROUND[1:]], None, True, False),
        ([], None, True, False),
    ],
)
def test_only_an_older_stack_in_the_background_is_replaced(stack, home, words, terminal, older, stops):
    stack["running"] = [Running(processes.SUPERVISOR, Process(words, terminal))]
    stack["older"] = older
    assert Stack(home).stop_older() is stops
    assert bool(stack["stopped"]) is stops


def test_without_a_supervisor_nothing_is_stopped(stack, home):
    stack["running"] = [Running("web", Process(BACKGROUND))]
    assert Stack(home).stop_older() is False


def test_a_server_that_does_not_answer_is_left(stack, home, monkeypatch):
    def refuse(_client):
        raise ServerUnreachable("stopping")

    stack["running"] = [Running(processes.SUPERVISOR, Process(BACKGROUND))]
    monkeypatch.setattr("web.http.client.Client.health", refuse)
    assert Stack(home).stop_older() is False
    assert stack["stopped"] == []


@pytest.mark.parametrize(
    ("build", "running", "state"),
    [
        (BUILD, [], StackState.READY),
        (OLDER, [], StackState.OTHER_VERSION),
        (None, ["a process"], StackState.STARTING),
        (None, [], StackState.NONE),
    ],
)
def test_a_stack_is_in_one_of_four_states(home, monkeypatch, build, running, state):
    def report(_client):
        if build is None:
            raise ServerUnreachable("nothing listens")
        return {"build": build}

    monkeypatch.setattr("web.http.client.Client.health", report)
    monkeypatch.setattr(processes, "list_running", lambda _settings: running)
    assert Stack(home).look() is state


def test_up_does_nothing_if_there_is_nothing_to_replace(home, monkeypatch):
    monkeypatch.setattr("web.features.lifecycle.commands._run_stack", lambda *_, **__: pytest.fail("it started"))
    monkeypatch.setattr(processes, "list_running", lambda _settings: [])
    run("up", "--daemon", "--replace")


@pytest.mark.parametrize(
    ("build", "says"), [(OLDER, "an earlier installation"), (OTHER, "another installation"), (None, "an earlier")]
)
def test_doctor_names_the_difference(home, monkeypatch, build, says):
    monkeypatch.setattr(
        "web.http.client.Client.health", lambda _client: {"version": VERSION, "encoder": "ready", "build": build}
    )
    found = run_doctor()["server"]
    assert (found["state"], says in found["says"]) == ("warn", True)
