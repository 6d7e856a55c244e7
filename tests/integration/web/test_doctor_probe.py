"""`reverie doctor --probe` runs the hooks and MCP servers that setup has written, and stores no memory."""

import json
import os
import shlex
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.features.team.servers import TeamServer, write_server
from pipeline.kernel.store import memories
from tests.fakes.command_line import remember, run, serve_app
from tests.fakes.in_process import flush_notes
from web.cli import cli
from web.features.diagnostics import probe as doctor_probe
from web.hooks import claude_code
from web.hosts import configured_commands, environment
from web.hosts.hook_entries import EVENTS, read_client_words
from web.stack import processes
from web.stack.stack import Stack

pytestmark = [pytest.mark.timeout(300), pytest.mark.files]

HOSTS = tuple(EVENTS)


@pytest.fixture(autouse=True)
def user(tmp_path, monkeypatch):
    """A user with a home folder, programs and a temporary folder of their own."""
    folder = tmp_path / "user"
    (folder / "tmp").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    for name in environment.HOST_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(processes, "list_running", lambda _settings: [])
    # A server in this process serves what setup connects.
    monkeypatch.setattr(Stack, "start_if_stopped", lambda _stack: None)
    monkeypatch.setattr("pipeline.index.encoder.is_compiled", lambda _model, _models: True)
    return folder


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """The folder of the programs that setup writes into the files of hosts; returns a function that writes one."""
    folder = tmp_path / "programs"
    folder.mkdir()

    def write(name, text):
        file = folder / name
        file.write_text(text)
        file.chmod(0o755)
        return file

    root = str(Path(__file__).parents[3])
    write("reverie", f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {root!r})\nfrom web.cli import cli\ncli()\n")
    # On a busy machine, the client and its host wait longer.
    patient = f"import sys\nsys.path.insert(0, {root!r})\nfrom web.hooks import client\nclient.WITHIN_S = 30.0\n"
    write("reverie-hook", f"#!{sys.executable}\n{patient}sys.exit(client.main())\n")
    monkeypatch.setattr(configured_commands, "_read_timeout_s", lambda _timeout: 60.0)
    monkeypatch.setattr(doctor_probe, "MCP_WITHIN_S", 60.0)
    monkeypatch.setattr(doctor_probe, "PROBE_TIMEOUT_S", 60.0)
    monkeypatch.setattr("web.features.hosts.commands.programs_folder", lambda: folder)
    return write


@pytest.fixture
def server(container, monkeypatch):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        yield container


@pytest.fixture
def connected(server, programs):
    """A server, and Claude Code connected to it."""
    run("setup", "claude-code", "--yes", "--no-import")
    return server


def run_doctor(*options):
    """Run the command and return its exit code and report."""
    done = CliRunner().invoke(cli, ["--json", "doctor", *options])
    return done.exit_code, json.loads(done.stdout)


def probe():
    """Run the probe and return its results by check and title."""
    code, report = run_doctor("--probe")
    results = [check for check in report["checks"] if "probe" in check["check"]]
    failed = any(check["state"] == "fail" for check in results)
    assert code == (1 if report["failed"] else 0)
    assert not failed or code == 1
    return {(check["check"], check["says"].partition(":")[0]): check for check in results}


@pytest.mark.parametrize("host", HOSTS)
def test_a_probe_runs_each_host_and_stores_no_memory(server, programs, host, home):
    memory_id = remember("The staging database listens on port 6543")
    run("setup", host, "--yes", "--no-import")
    results = probe()
    (title,) = {title for _, title in results}
    found = results["hook probe", title]
    assert found["state"] == "ok", results
    assert ("not probed" if host == "antigravity" else "session start in ") in found["says"]
    assert results["MCP probe", title]["state"] == "ok", results
    assert " tools in " in results["MCP probe", title]["says"]
    flush_notes(server)
    assert server.databases.ids() == ["default"]
    with server.workspace("default").database.read() as db:
        assert [memory.id for memory in memories.by_seqs(db, memories.all_seqs(db)).values()] == [memory_id]
    runs = server.agents.hook_runs.page(10, None).items
    assert [(each.event, each.host) for each in runs] == ([] if host == "antigravity" else [("SessionStart", host)])


def test_no_program_of_a_host_is_started(connected, programs, user, monkeypatch):
    marker = user / "started"
    for name in ("claude", "codex", "gemini"):
        programs(name, f"#!/bin/sh\ntouch {marker}\n")
    monkeypatch.setenv("PATH", f"{user.parent / 'programs'}:{os.environ['PATH']}")
    assert probe()["hook probe", "Claude Code"]["state"] == "ok"
    assert not marker.exists()


def settings_file(user):
    return user / ".claude" / "settings.json"


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("#!/bin/sh\ncat > /dev/null\n", "its event did not reach the server"),
        ("#!/bin/sh\necho boom >&2\nexit 3\n", "ended with exit code 3: boom"),
        ("#!/bin/sh\nexec sleep 60\n", "did not end within"),
    ],
)
def test_a_hook_that_fails_is_named_with_the_reason(connected, programs, monkeypatch, program, says):
    programs("reverie-hook", program)
    monkeypatch.setattr(doctor_probe, "RECORDED_WITHIN_S", 0.2)
    monkeypatch.setattr(configured_commands, "_read_timeout_s", lambda _timeout: 0.3 if "sleep" in program else 60.0)
    found = probe()["hook probe", "Claude Code"]
    assert (found["state"], says in found["says"]) == ("fail", True), found
    assert "`reverie" in found["hint"]


def test_a_program_that_is_gone_is_named(connected, user):
    (user.parent / "programs" / "reverie-hook").unlink()
    found = probe()["hook probe", "Claude Code"]
    assert (found["state"], "does not exist" in found["says"]) == ("fail", True)
    assert found["hint"] == "`reverie setup claude-code` writes the hooks again"


@pytest.mark.parametrize(("option", "says"), [("--home", "another data directory"), ("--port", "another address")])
def test_hooks_of_another_server_are_not_run(connected, user, option, says, tmp_path):
    file = settings_file(user)
    other = {"--home": str(tmp_path / "other"), "--port": "1"}[option]
    document = json.loads(file.read_text())
    for groups in document["hooks"].values():
        for group in groups:
            for handler in group["hooks"]:
                words = shlex.split(handler["command"])
                words[words.index(option) + 1] = other
                handler["command"] = shlex.join(words)
    file.write_text(json.dumps(document))
    found = probe()["hook probe", "Claude Code"]
    assert (found["state"], says in found["says"]) == ("fail", True), found


def test_a_file_that_cannot_be_read_is_named(connected, user):
    settings_file(user).write_text('{"hooks": ')
    found = probe()["hook probe", "Claude Code"]
    assert (found["state"], "is not valid JSON" in found["says"]) == ("fail", True)


def test_hooks_that_were_removed_are_missed(connected, user):
    settings_file(user).write_text("{}")
    assert "no hooks are configured" in probe()["hook probe", "Claude Code"]["says"]


def test_doctor_probe_reports_a_failing_event_with_its_reason(connected, monkeypatch):
    def fail(*_):
        raise RuntimeError("the disk is full")

    monkeypatch.setitem(claude_code.HANDLERS, "SessionStart", fail)
    found = probe()["hook probe", "Claude Code"]
    assert (found["state"], "the disk is full" in found["says"]) == ("fail", True), found


@pytest.mark.parametrize(
    ("setting", "value"), [("enabled", False), ("incognito", True), ("read_only", True), ("hook_recall", False)]
)
def test_a_switch_that_silences_hooks_is_said(home, programs, monkeypatch, setting, value):
    from tests.fakes.in_process import open_web

    text = home.paths.config.read_text()
    home.paths.config.write_text(f"{text}{setting} = {str(value).lower()}\n")
    from config.settings import load_settings

    container = open_web(load_settings())
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        run("setup", "claude-code", "--yes", "--no-import")
        found = probe()["hook probe", "Claude Code"]
    container.close()
    assert (found["state"], f"{setting} is {str(value).lower()}" in found["says"]) == ("warn", True), found
    assert "`reverie " in found["hint"]


def test_a_session_that_stores_nothing_is_said(connected, monkeypatch):
    monkeypatch.setenv("REVERIE_READ_ONLY", "true")
    assert "read_only is true" in probe()["hook probe", "Claude Code"]["says"]


def test_without_a_server_nothing_is_started(home, programs, monkeypatch):
    run("setup", "claude-code", "--yes", "--no-import")
    monkeypatch.setattr(Stack, "start", lambda _stack: pytest.fail("it started a stack"))
    before = sorted(path.name for path in home.home.iterdir())
    results = probe()
    assert {check["state"] for check in results.values()} == {"warn"}
    assert "not probed: no server answers" in results["MCP probe", "Claude Code"]["says"]
    assert sorted(path.name for path in home.home.iterdir()) == before


def test_doctor_probe_without_agents_reports_none_connected(server):
    (found,) = probe().values()
    assert "no agent was connected" in found["says"]


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("#!/bin/sh\ncat > /dev/null\n", "did not answer initialize within"),
        ("#!/bin/sh\nexit 1\n", "ended"),
        ("#!/bin/sh\necho no\nsleep 5\n", "something other than JSON"),
        ('#!/bin/sh\necho \'{"id": 1, "error": {"message": "no"}}\'\nsleep 5\n', "refused initialize"),
    ],
)
def test_an_mcp_server_that_fails_is_named(connected, programs, program, says, monkeypatch):
    monkeypatch.setattr(doctor_probe, "MCP_WITHIN_S", 0.5)
    monkeypatch.setattr(doctor_probe, "MCP_END_WITHIN_S", 0.2)
    programs("reverie", program)
    found = probe()["MCP probe", "Claude Code"]
    assert (found["state"], says in found["says"]) == ("fail", True), found
    assert "`reverie setup claude-code`" in found["hint"]


@pytest.fixture
def of_team(connected, user):
    """Let the hooks of Claude Code send to the server of a team."""
    file = settings_file(user)
    document = json.loads(file.read_text())
    for handler in (handler for groups in document["hooks"].values() for group in groups for handler in group["hooks"]):
        words = read_client_words(handler["command"], "linux")
        handler["command"] = shlex.join([*words[:2], "--server", "acme", *words[2:]])
    file.write_text(json.dumps(document))
    return connected


def test_a_team_is_asked_without_an_event(of_team, home, monkeypatch):
    write_server(home.paths.servers, TeamServer("acme", "http://127.0.0.1:1", "rvp_" + "x" * 43))
    asked = []
    monkeypatch.setattr(
        "pipeline.features.team.connections.list_open_workspaces",
        lambda server: asked.append(server.name) or frozenset(),
    )
    found = probe()["hook probe", "Claude Code"]
    assert (found["state"], "no event was sent" in found["says"]) == ("ok", True), found
    assert set(asked) == {"acme"}
    assert of_team.agents.hook_runs.page(10, None).items == []


def test_a_team_that_does_not_answer_or_is_unknown_is_a_failure(of_team, home):
    found = probe()["hook probe", "Claude Code"]
    assert (found["state"], "does not know this team" in found["says"]) == ("fail", True), found
    write_server(home.paths.servers, TeamServer("acme", "http://127.0.0.1:1", "rvp_" + "x" * 43))
    found = probe()["hook probe", "Claude Code"]
    assert found["state"] == "fail"
    assert "`reverie team add`" in found["hint"]
