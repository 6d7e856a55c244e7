"""Forgetting, Codex's notification and the service, on the command line."""

import json
import os
import plistlib
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.features.workspaces.identify import identify
from pipeline.kernel.store import agent_sessions
from tests.fakes.command_line import remember, run, run_json, serve_app
from web.cli.codex_notify import send_turn
from web.stack.service_manager import NoService, restart_installed, service_of, start_installed

THREAD = "0198c0de-0000-7000-8000-000000000001"


@pytest.fixture
def served(container, monkeypatch):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        yield container


def active(client):
    return [memory["content"] for memory in client.get("/v1/memories").get_json()["items"]]


@pytest.mark.usefixtures("served")
def test_a_memory_is_forgotten_and_comes_back(client):
    written = remember("Billing listens on port 8123")
    assert run("forget", written).stdout == f"archived {written}\n"
    assert active(client) == []
    run("restore", written)
    assert active(client) == ["Billing listens on port 8123"]
    assert run_json("forget", written, "--hard", "--yes") == {"forgotten": [written], "purged": True}
    run("restore", written, code=1)


@pytest.mark.usefixtures("served")
def test_forget_ambient_archives_all_ambient_memories(client):
    remember("Billing listens on port 8123")
    for session in ("s1", "s2", "s2"):
        options = ("--source", "ambient", "--session", session, "--importance", "0.5")
        remember(f"Fixed: `make test-{len(active(client))}` failed and passes now", *options)
    assert run("forget", "--ambient", "--session", "s2").stdout == "archived 2 ambient memories\n"
    assert len(active(client)) == 2
    assert run("forget", "--ambient").stdout == "archived 1 ambient memory\n"
    assert active(client) == ["Billing listens on port 8123"]
    assert run_json("forget", "--ambient") == {"forgotten": [], "purged": False}


@pytest.mark.parametrize("arguments", [(), ("x", "--ambient"), ("--ambient", "--hard"), ("x", "--session", "s1")])
def test_forget_without_a_target_is_invalid_usage(arguments):
    run("forget", *arguments, code=2)


def line(kind, **payload):
    return json.dumps({"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload})


def call(number, name, arguments):
    given = {"arguments": json.dumps(arguments)}
    return line("response_item", type="function_call", call_id=f"c{number}", name=name, **given)


def output(number, text):
    return line("response_item", type="function_call_output", call_id=f"c{number}", output=text)


def format_exit(code):
    return json.dumps({"output": "…", "metadata": {"exit_code": code, "duration_seconds": 0.1}})


PATCH = "*** Begin Patch\n*** Update File: src/pool.py\n@@\n-a\n+b\n*** Add File: src/new.py\n+c\n*** End Patch"
ROLLOUT = [
    line("session_meta", id=THREAD, cwd="/p"),
    line("event_msg", type="user_message", message="earlier"),
    call(0, "shell", {"command": ["bash", "-lc", "make earlier"]}),
    output(0, format_exit(0)),
    line("event_msg", type="user_message", message="fix the tests"),
    line("response_item", type="message", role="user", content=[]),
    call(1, "shell", {"command": ["bash", "-lc", "pytest -q"], "workdir": "/p"}),
    output(1, format_exit(1)),
    line("response_item", type="custom_tool_call", call_id="c2", name="apply_patch", input=PATCH),
    line("response_item", type="custom_tool_call_output", call_id="c2", output=format_exit(0)),
    call(3, "exec_command", {"cmd": "pytest -q"}),
    output(3, "Chunk ID: 1\nWall time: 1 seconds\nProcess exited with code 0\nOutput:\n1 passed"),
    call(4, "exec_command", {"cmd": "make lint"}),
    output(4, "Chunk ID: 2\nWall time: 1 seconds\nProcess exited with code 2\nOutput:\nexited with code 0"),
    call(6, "shell_command", {"command": "go test ./...", "workdir": "/p"}),
    output(6, "Exit code: 0\nWall time: 1 seconds\nOutput:\nok"),
    line("response_item", type="local_shell_call", call_id="c5", action={"type": "exec", "command": ["ls"]}),
    "{ half a li",
    "[]",
]


@pytest.fixture
def codex(tmp_path, monkeypatch):
    folder = tmp_path / "codex"
    day = folder / "sessions" / "2026" / "01" / "01"
    day.mkdir(parents=True)
    (day / f"rollout-2026-01-01T00-00-00-{THREAD}.jsonl").write_text("\n".join(ROLLOUT))
    monkeypatch.setenv("CODEX_HOME", str(folder))
    return folder


def notification(**fields):
    told = {"type": "agent-turn-complete", "thread-id": THREAD, "turn-id": "1", "cwd": "/p", "input-messages": ["fix"]}
    return json.dumps(told | {"last-assistant-message": "Done"} | fields)


@pytest.mark.parametrize("thread", ["", "unknown", "../../x", "*", None, 7])
def test_a_turn_without_a_rollout_only_ends(codex, tmp_path, thread):
    sent = []
    send_turn({"thread-id": thread}, codex, tmp_path / "offsets", sent.extend)
    assert [event["hook_event_name"] for event in sent] == ["Stop"]
    assert not (tmp_path / "offsets").exists()


def send_events(codex, offsets):
    sent = []
    send_turn(json.loads(notification()), codex, offsets, sent.extend)
    return [event.get("tool_input", {}).get("command", event["hook_event_name"]) for event in sent]


def test_each_codex_turn_is_sent_exactly_once(codex, tmp_path):
    [rollout], offsets = list(codex.rglob("*.jsonl")), tmp_path / "offsets"
    assert len(send_events(codex, offsets)) == 7
    assert send_events(codex, offsets) == ["Stop"]
    # A turn that was broken off sent no notification.
    with rollout.open("a") as file:
        file.write("\n" + call(20, "exec_command", {"cmd": "make broken-off"}) + "\n" + output(20, "ok") + "\n")
        file.write(line("event_msg", type="user_message", message="go on") + "\n")
        file.write(call(21, "exec_command", {"cmd": "make next"}) + "\n" + output(21, "ok") + "\n")
        file.write(call(22, "exec_command", {"cmd": "make half"}))
    assert send_events(codex, offsets) == ["make broken-off", "make next", "Stop"]
    with rollout.open("a") as file:
        file.write("\n" + output(22, "ok") + "\n")
    assert send_events(codex, offsets) == ["make half", "Stop"]
    # A file that was begun anew is read as a new one.
    rollout.write_text(call(1, "exec_command", {"cmd": "make anew"}) + "\n" + output(1, "ok") + "\n")
    assert send_events(codex, offsets) == ["make anew", "Stop"]


def test_failed_codex_turn_is_sent_with_the_next_notification(codex, tmp_path):
    def fail(_events):
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        send_turn(json.loads(notification()), codex, tmp_path / "offsets", fail)
    assert len(send_events(codex, tmp_path / "offsets")) == 7


@pytest.mark.usefixtures("codex")
def test_a_notification_fills_the_journal_of_its_project(served, client, tmp_path):
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    own = identify(project).id
    run("codex-notify", notification(cwd=str(project)))
    served.feedback.submit(lambda: None).result(timeout=20)
    with served.databases.get(own).read() as db:
        did = [(one.type, one.target, one.ok) for one in agent_sessions.list_actions(db, THREAD, "", 10)]
    assert did == [
        ("test", "pytest -q", False),
        ("edit", "src/pool.py", True),
        ("edit", "src/new.py", True),
        ("test", "pytest -q", True),
        ("command", "make lint", False),
        ("test", "go test ./...", True),
    ]
    [kept] = client.get("/v1/memories", workspace=own).get_json()["items"]
    assert kept["content"] == "Fixed: `pytest -q` failed and passes now. Edited src/pool.py, src/new.py."
    assert client.get("/v1/errors").get_json()["items"] == []


@pytest.mark.usefixtures("codex")
def test_codex_notification_uses_the_data_directory_of_its_options(served, tmp_path, monkeypatch):
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    paths, port = served.settings.paths, os.environ["REVERIE_PORT"]
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "nowhere"))
    monkeypatch.delenv("REVERIE_PORT")
    run("codex-notify", "--home", str(paths.root), "--port", port, notification(cwd=str(project)))
    served.feedback.submit(lambda: None).result(timeout=20)
    assert identify(project).id in paths.workspace_ids()
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.usefixtures("home", "codex")
@pytest.mark.parametrize("payload", [notification(), "{", "[]", '{"type": "approval-requested"}', ""])
def test_invalid_codex_notification_is_ignored(payload):
    assert run("codex-notify", payload).stdout == ""


@pytest.mark.usefixtures("codex")
def test_codex_turn_rejected_by_the_server_is_sent_again(served, tmp_path, monkeypatch):
    turns = served.settings.paths.codex_turns
    with monkeypatch.context() as patched:
        patched.setattr("web.cli.codex_notify.HOOK", "/hooks/nobody")
        assert "not recorded: HTTP 404" in run("codex-notify", notification(cwd=str(tmp_path))).stderr
    assert not turns.exists()
    run("codex-notify", notification(cwd=str(tmp_path)))
    assert [file.name for file in turns.iterdir()] == [THREAD]


HOME = Path("/home/ann")


def test_a_systemd_unit(home):
    found = service_of("linux", HOME, None, home)
    assert found.file == HOME / ".config/systemd/user/reverie.service"
    lines = found.text.decode().splitlines()
    [start] = [one.removeprefix("ExecStart=") for one in lines if one.startswith("ExecStart=")]
    assert shlex.split(start) == [sys.executable, "-u", "-I", "-m", "reverie", "up"]
    assert f'Environment="REVERIE_HOME={home.paths.root}"' in lines
    assert service_of("linux", HOME, "/elsewhere", home).file == Path("/elsewhere/systemd/user/reverie.service")


def test_a_units_special_signs_are_escaped(home):
    odd = replace(home, home=Path('/srv/50% "off" $HOME'))
    assert b'Environment="REVERIE_HOME=/srv/50%% \\"off\\" $HOME"' in service_of("linux", HOME, None, odd).text


def test_a_service_listens_where_the_environment_says(home):
    moved = replace(home, port=7099)
    variables = {"REVERIE_HOME": str(home.paths.root), "REVERIE_PORT": "7099"}
    line = f'Environment="REVERIE_HOME={home.paths.root}" "REVERIE_PORT=7099"'
    assert line in service_of("linux", HOME, None, moved).text.decode().splitlines()
    assert plistlib.loads(service_of("darwin", HOME, None, moved).text)["EnvironmentVariables"] == variables


def test_a_launchd_agent(home):
    found = service_of("darwin", HOME, None, home)
    assert found.file == HOME / "Library/LaunchAgents/dev.reverie.plist"
    agent = plistlib.loads(found.text)
    assert agent["ProgramArguments"] == [sys.executable, "-u", "-I", "-m", "reverie", "up"]
    assert agent["EnvironmentVariables"] == {"REVERIE_HOME": str(home.paths.root)}


def test_another_platform_has_no_service(home):
    with pytest.raises(NoService, match="reverie up --daemon"):
        service_of("win32", HOME, None, home)


@pytest.fixture
def manager(tmp_path, monkeypatch, home):
    """A systemctl that records its arguments."""
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/calls"\nexit ${{SYSTEMCTL_FAILS:-0}}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(sys, "platform", "linux")
    return tmp_path


def test_a_service_is_installed_and_removed(manager):
    file = manager / "config/systemd/user/reverie.service"
    for _ in range(2):
        assert run("service", "install").stdout == f"written {file}\n"
        assert file.is_file()
    (manager / "calls").unlink()
    run("service", "install")
    assert run("service", "remove").stdout == f"deleted {file}\n"
    assert not file.exists()
    assert (manager / "calls").read_text().splitlines() == [
        "--user daemon-reload",
        "--user enable --now reverie.service",
        "--user disable --now reverie.service",
        "--user daemon-reload",
    ]
    assert "there is no" in run("service", "remove").stdout


@pytest.fixture
def unit(manager, home):
    """The unit of a home, which the manager knows, and runs as process 4242 after a start."""
    file = manager / "config/systemd/user/reverie.service"
    file.parent.mkdir(parents=True)
    file.write_bytes(service_of("linux", Path.home(), None, home).text)
    answers = f"case $3 in --property=FragmentPath) echo {file};; --property=MainPID) echo 4242;; esac"
    (manager / "bin" / "systemctl").write_text(f'#!/bin/sh\necho "$@" >> "{manager}/calls"\n{answers}\n')
    return manager


def test_a_stack_whose_service_is_installed_is_started_by_it(unit, home):
    assert start_installed(home) == 4242
    assert "--user start reverie.service" in (unit / "calls").read_text().splitlines()


def test_service_of_another_data_directory_is_not_started(unit, home):
    assert start_installed(replace(home, home=Path("/srv/another"))) is None
    assert "start" not in (unit / "calls").read_text()


def test_only_a_stack_that_the_service_runs_is_restarted_by_it(unit, home):
    assert not restart_installed(home, 4241)
    assert not restart_installed(replace(home, home=Path("/srv/another")), 4242)
    assert "restart" not in (unit / "calls").read_text()
    assert restart_installed(home, 4242)
    assert "--user restart --no-block reverie.service" in (unit / "calls").read_text().splitlines()


def test_failing_service_manager_is_reported(manager, monkeypatch):
    monkeypatch.setenv("SYSTEMCTL_FAILS", "1")
    assert "systemctl --user daemon-reload" in run("service", "install", code=1).output


def test_without_a_service_manager_the_remaining_commands_are_listed(manager, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    answer = run_json("service", "install")
    assert answer["left_to_do"] == [
        "systemctl --user daemon-reload",
        "systemctl --user enable --now reverie.service",
    ]


def test_login_without_a_bus_lists_the_remaining_commands(manager, monkeypatch):
    monkeypatch.setenv("SYSTEMCTL_FAILS", "1")
    told = run("service", "install", code=1)
    assert told.stdout.startswith("written ")
    assert "`systemctl --user daemon-reload` failed" in told.stderr
    assert "run by hand: systemctl --user daemon-reload" in told.stderr
    assert "run by hand: systemctl --user enable --now reverie.service" in told.stderr


def test_a_dry_run_shows_the_service_and_does_nothing(manager):
    told = run("service", "install", "--dry-run")
    assert "[Service]" in told.stdout
    assert "run by hand: systemctl --user enable --now reverie.service" in told.stderr
    assert not (manager / "config").exists()
    assert not (manager / "calls").exists()
