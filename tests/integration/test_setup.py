"""`reverie setup` as a user runs it, in a home of its own."""

import json
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from web.cli import cli
from web.features.hosts.commands import HOSTS
from web.hosts.environment import HOST_VARIABLES
from web.hosts.hook_entries import read_client_words
from web.stack.stack import Stack

INVALID = '{"mcpServers": {'


@pytest.fixture
def scratch(tmp_path):
    home, project = tmp_path / "home", tmp_path / "project"
    programs = tmp_path / "bin"
    for folder in (home, project, programs):
        folder.mkdir()
    return home, project, programs


@pytest.fixture
def started(monkeypatch):
    """The data directories whose stack a setup started; none is really started."""
    directories = []
    monkeypatch.setattr(Stack, "start_if_stopped", lambda stack: directories.append(stack.settings.paths.root))
    return directories


@pytest.fixture
def reverie(scratch, started, monkeypatch):
    """Run the command in the scratch home, in this process; returns its exit code and output."""
    home, project, programs = scratch
    for name in HOST_VARIABLES:
        monkeypatch.delenv(name, raising=False)

    def run(*arguments, answer=None, **variables):
        user = {"HOME": str(home), "USERPROFILE": str(home), "PATH": str(programs)} | variables
        monkeypatch.chdir(project)
        return CliRunner().invoke(cli, arguments, input=answer, env=user)

    return run


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_without_any_host_it_says_so_and_leaves_nothing(reverie, scratch):
    done = reverie("setup")
    assert (done.exit_code, done.stdout.split(":")[0]) == (0, "no coding agent was found on this machine; name one")
    assert tree(scratch[0]) == {}


def test_in_a_folder_that_is_gone_only_a_project_cannot_be_set_up(reverie, scratch):
    scratch[1].rmdir()
    command = shlex.join([sys.executable, "-P", "-m", "web.cli", "setup"])
    done = [
        subprocess.run(
            ["/bin/sh", "-c", f'mkdir "$1" && cd "$1" && rmdir "$1" && {command} {option}', "sh", scratch[1]],
            env={"HOME": str(scratch[0]), "PATH": os.defpath, "PYTHONPATH": str(Path.cwd())},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        for option in ("", "--project")
    ]
    assert (done[0].returncode, done[0].stdout.split(":")[0]) == (
        0,
        "no coding agent was found on this machine; name one",
    )
    assert done[1].returncode == 2
    assert done[1].stderr.splitlines()[-1].endswith("this folder was deleted. Change to a project.")


def test_found_hosts_are_set_up_and_taken_back(reverie, scratch):
    home = scratch[0]
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text('{"mcpServers": {}}')
    (home / ".gemini").mkdir()
    before = tree(home)
    done = reverie("setup", "--yes", "--json")
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["hosts"] == ["cursor", "gemini"]
    assert [file["action"] for file in report["files"]] == ["create", "change", "create", "create"]
    server = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]["reverie"]
    assert server["args"] == ["mcp"]
    again = json.loads(reverie("setup", "--yes", "--json").stdout)
    assert {file["action"] for file in again["files"]} == {"none"}
    assert reverie("setup", "--remove", "--yes").exit_code == 0
    assert tree(home) == before


def test_every_host_and_a_project_come_and_go(reverie, scratch):
    home, project, _ = scratch
    for options in ([], ["--project"]):
        done = reverie("setup", *HOSTS, "--yes", *options)
        assert done.exit_code == 0, done.stderr
    assert not (home / ".reverie" / "token").exists()
    assert {".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", "AGENTS.md"} <= set(tree(project))
    for options in (["--project"], []):
        assert reverie("setup", "--remove", "--yes", *options).exit_code == 0
    assert tree(home) == {}
    assert list(project.iterdir()) == []


def test_no_file_of_a_host_contains_the_token(reverie, scratch):
    home, project, _ = scratch
    (home / ".reverie").mkdir(mode=0o700)
    (home / ".reverie" / "token").write_text("a-token-of-this-machine")
    for options in ([], ["--project"]):
        assert reverie("setup", *HOSTS, "--yes", *options).exit_code == 0
    written = {name: content for folder in (home, project) for name, content in tree(folder).items()}
    assert [name for name, content in written.items() if b"a-token-of-this-machine" in content] == [".reverie/token"]
    assert len(written) > len(HOSTS)


def test_setup_diff_hides_foreign_tokens_and_dry_run_writes_nothing(reverie, scratch):
    home = scratch[0]
    headers = {"Authorization": "Bearer other-token", "X-Reverie-Workspace": "team"}
    entry = {"type": "http", "url": "https://team.example/mcp", "headers": headers}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"reverie": entry}}, indent=2))
    before = tree(home)
    for options in (["--diff"], ["--remove", "--diff"], ["--json"]):
        done = reverie("setup", "claude-code", "--dry-run", *options)
        assert done.exit_code == 0, done.stderr
        assert "other-token" not in done.stdout + done.stderr
        assert "Bearer •••" in done.stdout
    assert tree(home) == before


def test_a_removal_says_nothing_of_files_that_no_setup_has_touched(reverie, scratch):
    (scratch[0] / ".cursor").mkdir()
    (scratch[0] / ".cursor" / "mcp.json").write_text("{}")
    done = reverie("setup", "--remove", "--yes")
    assert (done.exit_code, done.stdout) == (0, "no settings of these agents mention Reverie\n")


def test_setup_summary_lists_files_server_and_next_steps(reverie, scratch, started):
    """One row per agent, each changed line only on request, and the same for the removal."""
    home = scratch[0]
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text("{}\n")
    done = reverie("setup", "cursor", "zed", "--yes", REVERIE_PORT="7099")
    assert done.stdout.splitlines() == [
        "agent   connect       files that change",
        "Cursor  hooks, tools  ~/.cursor/hooks.json (new), ~/.cursor/mcp.json",
        "Zed     tools, rules  ~/.config/zed/settings.json (new), ~/.config/zed/AGENTS.md (new)",
        "`--diff` shows each file and line that changes.",
        "Connected: Cursor, Zed (4 files changed). Restart them.",
        "Server: http://127.0.0.1:7099",
        "Undo: `reverie setup cursor zed --remove`",
        "Try now: `reverie index project` in a project; `reverie dashboard`",
    ]
    assert started == [home / ".reverie"]
    done = reverie("setup", "--remove", "--diff", answer="y\n")
    lines = done.stdout.splitlines()
    assert f"--- {home / '.cursor' / 'mcp.json'}" in lines
    assert [line for line in lines if not line.startswith(("---", "+++", "@@", "-", "+", " "))] == [
        "agent   disconnect    files that change",
        "Cursor  hooks, tools  ~/.cursor/hooks.json (deleted), ~/.cursor/mcp.json",
        "Zed     tools, rules  ~/.config/zed/settings.json (deleted), ~/.config/zed/AGENTS.md (deleted)",
        "Disconnected: Cursor, Zed (4 files changed). Restart them.",
        "All memories stay in ~/.reverie. `reverie down` stops the server.",
        "Undo: `reverie setup`",
    ]
    assert len(started) == 1


def test_a_removal_names_only_agents_that_were_connected(reverie):
    """Another agent reads the rules of Claude Code, too."""
    reverie("setup", "claude-code", "--yes")
    assert reverie("setup", "opencode", "--remove", "--yes").stdout == "no settings of these agents mention Reverie\n"
    assert "Disconnected: Claude Code (3 files changed)." in reverie("setup", "--remove", "--yes").stdout


def test_a_server_that_does_not_start_is_reported(reverie, monkeypatch):
    monkeypatch.setattr(Stack, "start_if_stopped", lambda _stack: "no answer within 60 s")
    done = reverie("setup", "cursor", "--yes")
    assert "Reverie did not start: no answer within 60 s. Start it with `reverie up --daemon`." in done.stderr
    assert (done.exit_code, "Server:" in done.stdout) == (0, False)


def test_it_asks_before_it_writes(reverie, scratch):
    home = scratch[0]
    file = home / ".cursor" / "mcp.json"
    done = reverie("setup", "cursor", answer="n\n")
    assert (done.exit_code, file.exists()) == (0, False)
    assert "nothing was written" in done.stderr
    assert reverie("setup", "cursor", answer="").exit_code == 130
    assert not file.exists()
    assert reverie("setup", "cursor", answer="y\n").exit_code == 0
    assert file.exists()
    assert "up to date" in reverie("setup", "cursor", answer="").stdout


def test_a_file_that_cannot_be_parsed_is_left_alone_with_an_error(reverie, scratch):
    home = scratch[0]
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(INVALID)
    for options in ([], ["--remove"]):
        done = reverie("setup", "cursor", "zed", "--yes", *options)
        assert done.exit_code == 1
        assert f"Error: {file} was not changed: line 1 is not valid JSON" in done.stderr
        assert file.read_text() == INVALID
    reverie("setup", "cursor", "zed", "--yes")
    assert (home / ".config" / "zed" / "settings.json").exists()
    report = json.loads(reverie("setup", "cursor", "--dry-run", "--json").stdout)
    [_hooks, server] = report["files"]
    assert "not valid JSON" in server["error"]


@pytest.mark.parametrize(
    "arguments", [["emacs"], ["cursor", "--json"], ["cursor", "--what"], ["claude-code", "--yes", "--project"]]
)
def test_invalid_setup_arguments_are_rejected(reverie, scratch, arguments, tmp_path):
    variables = {"HOME": str(scratch[1]), "USERPROFILE": str(scratch[1])} if "--project" in arguments else {}
    done = reverie("setup", *arguments, **variables)
    assert done.exit_code == 2
    assert tree(tmp_path) == {}


def test_hosts_say_by_variables_where_their_files_are(reverie, scratch, tmp_path):
    reverie("setup", "codex", "opencode", "--yes", CODEX_HOME=str(tmp_path / "x"), XDG_CONFIG_HOME=str(tmp_path / "g"))
    assert (tmp_path / "x" / "config.toml").exists()
    assert (tmp_path / "g" / "opencode" / "opencode.json").exists()
    assert set(tree(scratch[0])) == {".reverie/setup.json"}


def test_environment_settings_are_passed_to_every_configured_program(reverie, scratch, tmp_path):
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    (elsewhere / "config.toml").write_text('host = "localhost"\nport = 7100\n')
    variables = {"REVERIE_HOME": str(elsewhere), "REVERIE_PORT": "7099"}
    assert reverie("setup", "claude-code", "codex", "--yes", **variables).exit_code == 0
    home = scratch[0]
    hook = json.loads((home / ".claude" / "settings.json").read_text())["hooks"]["SessionStart"][0]["hooks"][0]
    notify = tomllib.loads((home / ".codex" / "config.toml").read_text())
    options = ["--home", str(elsewhere), "--port", "7099"]
    assert read_client_words(hook["command"], "linux")[2:] == notify["notify"][1:] == options
    servers = json.loads((home / ".claude.json").read_text())["mcpServers"]["reverie"], notify["mcp_servers"]["reverie"]
    assert [server["env"] for server in servers] == [variables, variables]
    # Without the variable the home's own port is meant, and found there.
    assert reverie("setup", "codex", "--yes", REVERIE_HOME=str(elsewhere)).exit_code == 0
    assert tomllib.loads((home / ".codex" / "config.toml").read_text())["notify"][1:] == options[:2]
    assert reverie("setup", "claude-code", "codex", "--remove", "--yes", **variables).exit_code == 0
    assert tree(home) == {}


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for the host is a shell script")
@pytest.mark.parametrize(
    ("version", "events"), [("2.1.10 (Claude Code)", 0), ("2.1.90 (Claude Code)", 10), ("what?", 10)]
)
def test_an_installed_claude_code_is_asked_for_its_version(reverie, scratch, version, events):
    home, _, programs = scratch
    program = programs / "claude"
    program.write_text(f"#!/bin/sh\necho '{version}'\n")
    program.chmod(0o755)
    assert reverie("setup", "--yes").exit_code == 0
    settings = home / ".claude" / "settings.json"
    assert len(json.loads(settings.read_text())["hooks"] if settings.exists() else ()) == events
