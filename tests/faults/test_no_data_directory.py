"""Where nothing says where the data directory is, none is made: not in the project, and not by a guess.

From field reports of the kind "a folder called ~ appeared in my repository" (containers with an arbitrary user id).
"""
# Reported of comparable tools: gregreen/dustmaps#2

import json
import os
import subprocess
import sys
from functools import partial

import pytest

from config.settings import load_settings
from config.toml_files import SettingsError
from tests.support.played_host import PlayedHost, bare, hello
from web.cli.mcp import _connect, _find_switches
from web.cli.output import BROKEN_HOME
from web.cli.state import State
from web.mcp.relay import Relay
from web.mcp.session import Session

CLI = [sys.executable, "-I", "-m", "web.cli"]
HOOK = [sys.executable, "-I", "-m", "web.hooks.client", "claude-code"]
NO_HOME = "neither REVERIE_HOME nor HOME names the data directory"
NOT_ABSOLUTE = "REVERIE_HOME must be an absolute path"
# As a user whom the system does not list, without HOME.
STRANGER = ["unshare", "-U", "--map-user=12345", "env", "-i", f"PATH={os.defpath}"]


def can_be_a_stranger():
    return subprocess.run([*STRANGER, "true"], capture_output=True, check=False).returncode == 0


# One for each answer; `tests/unit/config/test_data_directory.py` lists the paths that are refused.
CASES = {
    "no home": (STRANGER, {}, NO_HOME),
    "a relative folder": ([], {"HOME": "/root", "REVERIE_HOME": "rel/dir"}, NOT_ABSOLUTE),
}


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    """A way to run a program in an empty folder where nothing names the data directory, and what is to be said."""
    before, variables, says = CASES[request.param]
    if before and not can_be_a_stranger():
        pytest.skip("this system gives no user namespace")

    def run(command, stdin="", answers=0):
        with subprocess.Popen(
            [*before, *command],
            cwd=tmp_path,
            env={"PATH": os.defpath} | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            process.stdin.write(stdin)
            process.stdin.flush()
            # A host closes its end only after it has its answers.
            lines = [process.stdout.readline() for _ in range(answers)]
            out, err = process.communicate(timeout=120)
        assert list(tmp_path.iterdir()) == []
        return subprocess.CompletedProcess(command, process.returncode, "".join(lines) + out, err)

    return run, says


def test_a_hook_does_nothing(case):
    run, _ = case
    event = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "hello", "cwd": "."})
    done = run(HOOK, event)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "words", [["status"], ["remember", "x"], ["up", "--daemon"], ["doctor"], ["setup", "--yes"], ["list", "--json"]]
)
def test_commands_say_it_in_one_line(case, words):
    run, says = case
    done = run([*CLI, *words])
    assert done.returncode == BROKEN_HOME, done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith(f"Error: {says}")


def test_version_command_needs_no_data_directory(case):
    run, _ = case
    assert run([*CLI, "--version"]).returncode == 0


def test_codex_is_not_disturbed(case):
    run, says = case
    done = run([*CLI, "codex-notify", '{"type": "agent-turn-complete", "thread-id": "x"}'])
    assert (done.returncode, done.stdout) == (0, "")
    assert says in done.stderr


def test_mcp_shakes_hands_and_says_it_where_a_tool_is_called(case):
    run, says = case
    greeting = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "recall", "arguments": {"query": "x"}}},
    ]
    done = run([*CLI, "mcp"], "".join(json.dumps(line) + "\n" for line in lines), answers=3)
    answers = {one["id"]: one for one in map(json.loads, done.stdout.splitlines())}
    assert answers[1]["result"]["serverInfo"]["name"] == "reverie"
    assert answers[2]["result"]["tools"]
    assert answers[3]["result"]["isError"]
    assert says in answers[3]["result"]["content"][0]["text"]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("is_standalone", [False, True])
def test_a_broken_config_is_said_by_a_tool_too(tmp_path, monkeypatch, is_standalone):
    (tmp_path / "config.toml").write_text("port = 1\nport = 2\n")
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path))
    with pytest.raises(SettingsError) as refused:
        load_settings()
    call = bare("tools/call", 1, params={"name": "recall", "arguments": {"query": "x"}})
    host = PlayedHost([hello(), call])
    connect = partial(_connect, State(), None, is_read_only=False, is_standalone=is_standalone)
    Relay(host, Session("core", partial(_find_switches, State(), None, is_read_only=False)), connect).run()
    assert host.sent[-1]["result"]["content"][0]["text"] == str(refused.value)
    assert f"{tmp_path / 'config.toml'}: Cannot overwrite a value (at line 2" in str(refused.value)


BROKEN = [(b"a = 1\nport = \n", "line 2"), (b"\n\nport = '\xff'\n", "line 3"), (b"prot = 1", "prot")]


@pytest.mark.parametrize(
    ("words", "content", "where"),
    [
        *((words, *BROKEN[0]) for words in (["up", "--daemon"], ["config"], ["recall", "x"], ["doctor"])),
        *((["status"], *broken) for broken in BROKEN),
    ],
)
def test_every_command_names_a_config_that_cannot_be_read(tmp_path, words, content, where):
    file = tmp_path / "home" / "config.toml"
    file.parent.mkdir()
    file.write_bytes(content)
    done = subprocess.run(
        [*CLI, *words],
        cwd=tmp_path,
        env={"PATH": os.defpath, "HOME": str(tmp_path), "REVERIE_HOME": str(file.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 1
    assert str(file) in said
    assert where in said
    assert "Traceback" not in said
    assert [one.name for one in file.parent.iterdir()] == ["config.toml"]
