"""Hooks and commands reach the data directory's own server, and send nothing to another program at its port.

The case is from issues of comparable tools: another program or another user's server at the default port.
"""
# Reported of comparable tools: thedotmack/claude-mem#2279, thedotmack/claude-mem#3603

import http.client
import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from config.paths import HomePaths
from tests.fakes.command_line import run, run_json, serve_app
from tests.fakes.in_process import fast_settings, open_web
from tests.support import strangers
from web.hooks import client
from web.http import local_connection

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
def _impatience(monkeypatch):
    monkeypatch.setattr("web.http.client.CONNECT_WITHIN_S", 0.2)


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


@pytest.fixture
def own_server(tmp_path, monkeypatch):
    """The server of a data directory, in this process; yields its container and its port."""
    container = open_web(fast_settings(tmp_path / "own"))
    monkeypatch.setenv("REVERIE_HOME", str(container.settings.paths.root))
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        yield container, port
    container.close()


@pytest.fixture
def only_tcp(monkeypatch):
    """Let the system have no Unix sockets."""
    monkeypatch.setattr(local_connection, "find_socket", lambda _home: None)


def send_event(home, port, prompt=PROMPT, within_s=30.0):
    event = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": prompt}).encode()
    variables = {"REVERIE_HOME": str(home), "REVERIE_PORT": str(port)}
    return client.post_event(str(home), variables, "/hooks/claude-code", event, client.time.monotonic() + within_s)


def assert_learned_nothing(stranger, home):
    for secret in (TOKEN, PROMPT, str(home), "Authorization", "session"):
        assert secret.encode() not in stranger.received


# With Unix sockets


@pytest.mark.parametrize("behave", [strangers.be_silent, strangers.say_healthy])
def test_nothing_connects_to_a_stranger(home, listen, behave):
    stranger = listen(behave)
    with pytest.raises(ConnectionRefusedError):
        send_event(home, stranger.port)
    assert "No Reverie server answers" in run("recall", PROMPT, code=1).stderr
    notice = {"type": "agent-turn-complete", "thread-id": "t", "cwd": str(home), "input-messages": [PROMPT]}
    assert "No Reverie server answers" in run("codex-notify", json.dumps(notice)).stderr
    assert run_json("status")["answers"] is False
    assert stranger.connections == 0


def test_the_program_of_hooks_keeps_the_event_and_prints_nothing_of_a_stranger(home, listen):
    stranger = listen(strangers.say_json)
    starting = client.take_lock(str(home), client.START_LOCK)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "web.hooks.client", "claude-code"],
        input=json.dumps({"hook_event_name": "Stop", "session_id": "s", "said": PROMPT}).encode(),
        capture_output=True,
        check=False,
        cwd=Path.cwd(),
        env={**os.environ, "PYTHONPATH": str(Path(client.__file__).parents[2])},
    )
    os.close(starting)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert stranger.connections == 0
    assert len(list((home / "spool").glob("*.json"))) == 1


def test_a_stranger_at_the_port_is_in_nobodys_way(own_server, listen):
    container, _ = own_server
    stranger = listen(strangers.say_healthy)
    assert "created" in run("remember", "The deploy runs on Fridays").stdout
    send_event(container.settings.paths.root, stranger.port, "Remember that: dark mode is the default")
    assert "dark mode" in run("recall", "dark mode").stdout
    assert stranger.connections == 0


def test_who_has_the_port_is_named_where_it_matters(home, listen):
    stranger = listen(strangers.be_silent)
    said = f"Cannot listen on 127.0.0.1:{stranger.port}: "
    for done in (run("up", code=1).stderr, run("doctor", code=1).output):
        assert said in done
        assert f"(pid {os.getpid()}) uses the port. Stop it, or set another `port`" in done


def test_without_a_data_directory_none_is_made(tmp_path, listen, monkeypatch):
    home = tmp_path / "nowhere"
    monkeypatch.setenv("REVERIE_HOME", str(home))
    stranger = listen(strangers.say_healthy)
    run("recall", PROMPT, code=1)
    assert not home.exists()
    assert stranger.connections == 0


def test_the_own_server_is_reached(own_server):
    container, port = own_server
    assert "created" in run("remember", "The deploy runs on Fridays").stdout
    send_event(container.settings.paths.root, port, "Remember that: dark mode is the default")
    assert "dark mode" in run("recall", "dark mode").stdout


def test_the_directory_may_be_named_by_another_path(own_server, tmp_path, monkeypatch):
    container, _ = own_server
    (tmp_path / "link").symlink_to(container.settings.paths.root)
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "link"))
    assert "created" in run("remember", "The deploy runs on Fridays").stdout


@pytest.mark.parametrize("change", [HomePaths.renew_token, lambda paths: paths.token_file.unlink()])
def test_a_new_or_lost_token_is_read_again(own_server, change):
    container, _ = own_server
    change(container.settings.paths)
    assert "created" in run("remember", "The deploy runs on Fridays").stdout


def test_a_copied_directory_does_not_reach_the_first_ones_server(own_server, tmp_path, monkeypatch):
    container, port = own_server
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", container.settings.paths.root, copy], check=True)
    assert (copy / local_connection.SOCKET).is_socket()
    monkeypatch.setenv("REVERIE_HOME", str(copy))
    run("recall", PROMPT, code=1)
    with pytest.raises(ConnectionRefusedError):
        send_event(copy, port)


def ask_socket(root, token, **headers):
    """Return the status of a list of people, which only the owner may see, asked at the socket."""
    with closing(http.client.HTTPConnection("localhost")) as connection:
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(local_connection.find_socket(str(root)))
        connection.request("GET", "/v1/people", headers={"Authorization": f"Bearer {token}"} | headers)
        return connection.getresponse().status


def test_the_socket_needs_the_token_and_the_name_of_this_machine(own_server):
    container, _ = own_server
    root, token = container.settings.paths.root, container.token
    assert ask_socket(root, token) == 200
    assert ask_socket(root, "wrong") == 401
    assert ask_socket(root, token, Host="evil.example") == 403
    assert ask_socket(root, token, Origin="http://evil.example") == 403


def test_a_link_to_the_dashboard_has_the_servers_own_address(own_server, monkeypatch):
    container, _ = own_server
    monkeypatch.setenv("REVERIE_PORT", "1")
    assert run("dashboard", "--print-url").stdout.startswith(f"{container.settings.url}/")


@pytest.mark.parametrize("proxy", ["127.0.0.1", "192.0.2.1"])
def test_the_owner_keeps_the_socket_of_a_server_for_other_machines(tmp_path, proxy):
    settings = fast_settings(tmp_path / "team", host="192.0.2.7", behind_proxy=proxy)
    container = open_web(settings)
    with serve_app(container):
        assert ask_socket(settings.paths.root, container.token) == 200
        assert ask_socket(settings.paths.root, "wrong") == 401
    container.close()


# Without Unix sockets


@pytest.mark.parametrize("behave", ALONE)
def test_a_hook_sends_a_stranger_nothing_and_believes_nothing(home, listen, only_tcp, behave):
    stranger = listen(behave)
    with pytest.raises(ConnectionRefusedError):
        send_event(home, stranger.port, within_s=0.2)
    assert stranger.connections == 1
    assert_learned_nothing(stranger, home)


def test_a_prompt_waits_for_no_silent_stranger(home, listen, only_tcp, monkeypatch):
    stranger = listen(strangers.be_silent)
    monkeypatch.setattr(client, "WITHIN_S", 0.1)
    monkeypatch.setattr(client, "start", lambda *_: None)
    monkeypatch.setattr(client, "read_event", lambda: b'{"hook_event_name": "UserPromptSubmit", "session_id": "s"}')
    began = client.time.monotonic()
    assert client._answer(["claude-code"]) == b""
    assert client.time.monotonic() - began < client.START_WITHIN_S
    assert stranger.connections == 2


@pytest.mark.parametrize("behave", ALONE)
def test_a_command_sends_a_stranger_nothing(home, listen, only_tcp, behave):
    stranger = listen(behave)
    assert "No Reverie server answers" in run("recall", PROMPT, code=1).stderr
    assert stranger.connections == 1
    assert_learned_nothing(stranger, home)


@pytest.fixture
def patience(monkeypatch):
    monkeypatch.setattr("web.http.client.CONNECT_WITHIN_S", 30.0)


def test_the_own_server_is_believed(own_server, only_tcp, patience):
    container, port = own_server
    assert "created" in run("remember", "The deploy runs on Fridays").stdout
    send_event(container.settings.paths.root, port, "Remember that: dark mode is the default")
    assert "dark mode" in run("recall", "dark mode").stdout


@pytest.mark.parametrize("change", [HomePaths.renew_token, lambda paths: paths.token_file.unlink()])
def test_a_new_or_lost_token_is_proven_at_the_next_connection(own_server, only_tcp, patience, change):
    container, _ = own_server
    change(container.settings.paths)
    assert "created" in run("remember", "The deploy runs on Fridays").stdout


def test_a_relay_to_the_own_server_at_another_port_is_a_stranger(own_server, listen, only_tcp, patience):
    container, port = own_server
    root = container.settings.paths.root
    relay = listen(strangers.relay_to(port))
    with pytest.raises(ConnectionRefusedError):
        send_event(root, relay.port)
    run("recall", PROMPT, code=1)
    for secret in (container.token, PROMPT, "Authorization"):
        assert secret.encode() not in relay.received


def test_another_directorys_server_is_a_stranger(own_server, tmp_path, monkeypatch, only_tcp, patience):
    _, port = own_server
    other = HomePaths(tmp_path / "other")
    other.token()
    monkeypatch.setenv("REVERIE_HOME", str(other.root))
    run("recall", PROMPT, code=1)
    with pytest.raises(ConnectionRefusedError):
        send_event(other.root, port)


def test_the_server_of_a_copied_directory_is_a_stranger(own_server, tmp_path, monkeypatch, only_tcp, patience):
    container, port = own_server
    copy = HomePaths(tmp_path / "copy")
    copy.root.mkdir()
    copy.token_file.write_text(container.token)
    monkeypatch.setenv("REVERIE_HOME", str(copy.root))
    run("recall", PROMPT, code=1)
    with pytest.raises(ConnectionRefusedError):
        send_event(copy.root, port)


def test_a_server_that_lacks_a_field_is_no_error_of_the_program(own_server, monkeypatch):
    monkeypatch.setattr("web.http.client.Client.workspaces", lambda client: client.call("GET", "/healthz"))
    said = run("status", code=4)
    assert "answer lacks the field 'items'" in said.stdout
