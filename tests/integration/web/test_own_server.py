"""Nothing is sent to a program that has the server's port and is not the server, and nothing of it is believed.

The case is from issues of comparable tools: another program or another user's server at the default port.
"""
# Reported of comparable tools: thedotmack/claude-mem#2279, thedotmack/claude-mem#3603

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from config.paths import HomePaths
from config.settings import Settings
from pipeline.errors import WrongServer
from tests.fakes.command_line import run, serve_app
from tests.fakes.in_process import fast_settings, open_web
from tests.support import strangers
from web.hooks import client
from web.mcp.connection import Connection, MessageClient
from web.stack.stack import Stack

TOKEN = "the-token-of-this-data-directory"
PROMPT = "a prompt that is nobody else's business"
ALONE = (
    strangers.be_silent,
    strangers.hang_up,
    strangers.say_json,
    strangers.say_healthy,
    strangers.say_garbage,
    strangers.say_without_end,
    strangers.drip,
)


@pytest.fixture(autouse=True)
def _impatience(monkeypatch, _patience):
    monkeypatch.setattr("web.stack.own_server.PROOF_WITHIN_S", 0.2)
    monkeypatch.setattr(client, "WITHIN_S", 0.2)


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "token").write_text(TOKEN)
    monkeypatch.setenv("REVERIE_HOME", str(home))
    return home


@pytest.fixture
def listen(monkeypatch):
    """Let a stranger listen at the data directory's port for the rest of the test."""
    with ExitStack() as running:

        def start(behave, port=0):
            made = running.enter_context(strangers.stranger(behave, port))
            monkeypatch.setenv("REVERIE_PORT", str(made.port))
            return made

        yield start


def send_event(home, port, prompt=PROMPT):
    event = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": prompt}).encode()
    deadline = client.time.monotonic() + client.WITHIN_S
    return client.post_event("127.0.0.1", port, "/hooks/claude-code", str(home), event, deadline)


def assert_learned_nothing(stranger, home):
    for secret in (TOKEN, PROMPT, str(home), "Authorization", "session"):
        assert secret.encode() not in stranger.received


@pytest.mark.parametrize("behave", ALONE)
def test_a_hook_sends_a_stranger_nothing_and_believes_nothing(home, listen, behave):
    stranger = listen(behave)
    assert send_event(home, stranger.port) == b""
    assert stranger.connections == 1
    assert_learned_nothing(stranger, home)


@pytest.mark.parametrize("behave", [strangers.be_silent, strangers.say_json])
def test_hooks_leave_a_stranger_alone_for_a_while(home, listen, behave, monkeypatch):
    stranger = listen(behave)
    for _ in range(3):
        send_event(home, stranger.port)
    assert stranger.connections == 1
    assert client.read_unproven(str(home))[1] == f"127.0.0.1:{stranger.port}"
    monkeypatch.setattr(client, "AGAIN_S", 0.0)
    send_event(home, stranger.port)
    assert stranger.connections == 2


def test_a_note_that_cannot_be_read_stops_no_hook(home, listen):
    (home / client.UNPROVEN).write_bytes(b"yesterday")
    stranger = listen(strangers.say_json)
    assert send_event(home, stranger.port) == b""
    assert stranger.connections == 1


def test_the_program_of_hooks_prints_nothing_of_a_stranger(home, listen):
    stranger = listen(strangers.say_json)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "web.hooks.client", "claude-code"],
        input=json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": PROMPT}).encode(),
        capture_output=True,
        check=False,
        cwd=Path.cwd(),
        env={**os.environ, "PYTHONPATH": str(Path(client.__file__).parents[2])},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert stranger.connections == 1
    assert_learned_nothing(stranger, home)


@pytest.mark.parametrize("behave", ALONE)
def test_a_command_ends_with_the_program_that_has_the_port(home, listen, behave):
    stranger = listen(behave)
    said = run("recall", PROMPT, code=4).stderr
    assert f"(pid {os.getpid()}) at 127.0.0.1:{stranger.port} is not the Reverie of {home}" in said
    assert f"choose another port: `port` in {home / 'config.toml'}, or REVERIE_PORT" in said
    assert_learned_nothing(stranger, home)


@pytest.mark.parametrize("behave", [strangers.be_silent, strangers.say_json])
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (4, ("status",)),
        (1, ("doctor",)),
        (4, ("remember", PROMPT)),
        (4, ("dashboard",)),
        (4, ("logs", "errors")),
    ],
)
def test_every_command_names_it(home, listen, behave, code, words):
    stranger = listen(behave)
    done = run(*words, code=code)
    assert "is not the Reverie of" in done.output
    assert "Traceback" not in done.output
    assert_learned_nothing(stranger, home)


def test_codex_notification_is_not_handed_to_a_stranger(home, listen):
    stranger = listen(strangers.say_json)
    notice = {"type": "agent-turn-complete", "thread-id": "t", "cwd": str(home), "input-messages": [PROMPT]}
    assert "is not the Reverie of" in run("codex-notify", json.dumps(notice)).stderr
    assert_learned_nothing(stranger, home)


@pytest.mark.parametrize("behave", [strangers.be_silent, strangers.say_healthy])
def test_a_tool_answers_with_the_program_that_has_the_port_and_starts_nothing(home, listen, behave, monkeypatch):
    stranger = listen(behave)
    started = []
    settings = Settings(home=home, port=stranger.port)
    monkeypatch.setattr("web.stack.stack.start_detached", lambda *_: started.append(1))
    connection = Connection(MessageClient.from_settings(settings), lambda **_: "default", Stack(settings))
    with pytest.raises(WrongServer, match="is not the Reverie of"):
        connection.post("/mcp", PROMPT.encode(), {}, stores=False, may_repeat=True)
    assert started == []
    assert_learned_nothing(stranger, home)


def test_a_stack_that_cannot_start_names_the_program_that_has_the_port(home, listen):
    stranger = listen(strangers.be_silent)
    said = run("up", code=1).stderr
    assert f"Cannot listen on 127.0.0.1:{stranger.port}: " in said
    assert f"(pid {os.getpid()}) uses the port. Stop it, or set another `port`" in said


def test_without_a_data_directory_a_stranger_gets_nothing_and_none_is_made(tmp_path, listen, monkeypatch):
    home = tmp_path / "nowhere"
    monkeypatch.setenv("REVERIE_HOME", str(home))
    stranger = listen(strangers.say_healthy)
    run("recall", PROMPT, code=4)
    assert not home.exists()
    assert_learned_nothing(stranger, home)


# The server itself


@pytest.fixture
def own_server(tmp_path, monkeypatch):
    """The server of a data directory, in this process; yields its container and its port."""
    monkeypatch.setattr("web.stack.own_server.PROOF_WITHIN_S", 30.0)
    monkeypatch.setattr(client, "WITHIN_S", 30.0)
    container = open_web(fast_settings(tmp_path / "own"))
    monkeypatch.setenv("REVERIE_HOME", str(container.settings.paths.root))
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        yield container, port
    container.close()


def test_the_own_server_is_believed(own_server):
    container, port = own_server
    root = container.settings.paths.root
    assert "created" in run("remember", "The deploy runs on Fridays").stdout
    event = b'{"hook_event_name": "Unknown", "session_id": "s"}'
    client.post_event("127.0.0.1", port, "/hooks/claude-code", str(root), event, client.time.monotonic() + 30)
    assert client.read_unproven(str(root)) is None
    assert "event 'Unknown' of claude-code: Reverie does not handle it" in run("logs", "errors").stdout


def test_the_directory_may_be_named_by_another_path(own_server, tmp_path, monkeypatch):
    container, _ = own_server
    (tmp_path / "link").symlink_to(container.settings.paths.root)
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "link"))
    assert "created" in run("remember", "The deploy runs on Fridays").stdout


def test_a_new_token_is_proven_at_the_next_connection(own_server):
    container, _ = own_server
    container.settings.paths.renew_token()
    assert "created" in run("remember", "The deploy runs on Fridays").stdout


def test_a_token_that_was_lost_is_made_again_and_proven(own_server):
    container, _ = own_server
    container.settings.paths.token_file.unlink()
    assert "created" in run("remember", "The deploy runs on Fridays").stdout


def test_a_relay_to_the_own_server_at_another_port_is_a_stranger(own_server, listen):
    container, port = own_server
    root = container.settings.paths.root
    relay = listen(strangers.relay_to(port))
    assert send_event(root, relay.port) == b""
    run("recall", PROMPT, code=4)
    for secret in (container.token, PROMPT, "Authorization"):
        assert secret.encode() not in relay.received


def test_another_directorys_server_is_a_stranger(own_server, tmp_path, monkeypatch):
    _, port = own_server
    other = HomePaths(tmp_path / "other")
    other.token()
    monkeypatch.setenv("REVERIE_HOME", str(other.root))
    assert f"is not the Reverie of {other.root}" in run("recall", PROMPT, code=4).stderr
    assert send_event(other.root, port) == b""


def test_the_server_of_a_copied_directory_is_a_stranger(own_server, tmp_path, monkeypatch):
    container, port = own_server
    copy = HomePaths(tmp_path / "copy")
    copy.root.mkdir()
    copy.token_file.write_text(container.token)
    monkeypatch.setenv("REVERIE_HOME", str(copy.root))
    run("recall", PROMPT, code=4)
    assert send_event(copy.root, port) == b""


def test_a_server_that_lacks_a_field_is_no_error_of_the_program(own_server, monkeypatch):
    monkeypatch.setattr("web.client.Client.workspaces", lambda client: client.call("GET", "/healthz"))
    said = run("status", code=4)
    assert "answer lacks the field 'items'" in said.stdout
