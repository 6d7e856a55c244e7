"""The client of hooks: silent and gone at once where nothing runs, and nothing of the agent's folder is run."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import urllib3

from tests.support.served import serve_home
from tests.support.stack import free_port
from web.hooks import client
from web.stack import detached

CLIENT = Path(client.__file__)


@pytest.fixture
def started(monkeypatch):
    """What is started, in order, instead of being started."""
    commands = []
    monkeypatch.setattr(detached, "start_detached", lambda command, *_, **__: commands.append(command))
    return commands


def test_nothing_of_the_agents_folder_is_run(tmp_path, started):
    client.start(str(tmp_path / "home"), {})
    [[*command, _up, _daemon]] = started
    (tmp_path / "web").mkdir()
    trap = tmp_path / "trap"
    for name in ("__init__.py", "cli.py"):
        (tmp_path / "web" / name).write_text(f"open({str(trap)!r}, 'w')\n")
    variables = os.environ | {"PYTHONPATH": str(Path.cwd())}
    told = subprocess.run([*command, "--version"], cwd=tmp_path, env=variables, capture_output=True, check=False)
    assert not trap.exists()
    assert (command[0], told.returncode) == (sys.executable, 0)


def test_a_start_that_was_just_tried_is_not_tried_at_the_next_step(tmp_path, started):
    for _ in range(3):
        client.start(str(tmp_path), {})
    assert len(started) == 1


def test_only_one_process_starts_the_stack_at_a_time(tmp_path, started):
    held = client.take_lock(str(tmp_path), client.START_LOCK)
    assert client.is_starting(str(tmp_path))
    client.start(str(tmp_path), {})
    os.close(held)
    assert started == []
    assert not client.is_starting(str(tmp_path))


@pytest.fixture
def answer(tmp_path, monkeypatch):
    """Answer an event while the stack is down: `refusals` is the number of refused connections, None for all."""

    def run(name, *, refusals, starts=True):
        started, tried = [], []

        def post(_home, _variables, _path, _event, deadline, headers):
            tried.append((deadline - time.monotonic(), headers))
            if refusals is None or len(tried) <= refusals:
                raise ConnectionRefusedError
            return b'{"hookSpecificOutput": {}}'

        monkeypatch.setattr(
            client, "read_event", lambda: json.dumps({"hook_event_name": name}, separators=(",", ":")).encode()
        )
        monkeypatch.setattr(client, "post_event", post)
        monkeypatch.setattr(client, "start", lambda *_: started.append(name))
        monkeypatch.setattr(client, "is_starting", lambda _: bool(started) and starts)
        monkeypatch.setattr(client, "POLL_S", 0)
        body = client._answer(["gemini" if name == "BeforeAgent" else "claude-code", "--home", str(tmp_path)])
        return body, started, tried

    return run


@pytest.mark.parametrize("name", ["UserPromptSubmit", "BeforeAgent", "beforeSubmitPrompt"])
@pytest.mark.parametrize("refusals", [1, 2, 30])
def test_the_prompt_that_starts_the_stack_waits_for_its_answer(answer, name, refusals):
    body, started, tried = answer(name, refusals=refusals)
    assert body
    assert started == [name]
    assert len(tried) == refusals + 1


def test_an_early_start_leaves_the_rest_of_the_time_for_the_answer(answer):
    _, _, [first, second] = answer("UserPromptSubmit", refusals=1)
    assert (first[0], first[1]) == (pytest.approx(client.WITHIN_S, abs=0.2), "")
    assert second[0] == pytest.approx(client.START_WITHIN_S + client.WITHIN_S, abs=0.3)
    [wait_ms] = re.findall(r"^X-Reverie-Wait: (\d+)\r\n$", second[1])
    assert second[0] - 0.3 < int(wait_ms) / 1000 < second[0]


@pytest.mark.parametrize("name", ["SessionStart", "PreToolUse", "PostToolUse", "Stop"])
def test_another_event_starts_the_stack_and_does_not_wait(answer, name):
    body, started, tried = answer(name, refusals=None)
    assert (body, started, len(tried)) == (b"", [name], 1)


def test_a_prompt_does_not_wait_for_a_start_that_failed(answer):
    body, started, tried = answer("UserPromptSubmit", refusals=None, starts=False)
    assert (body, started, len(tried)) == (b"", ["UserPromptSubmit"], 2)


def test_a_prompt_waits_no_longer_than_its_host(answer, monkeypatch):
    monkeypatch.setattr(client, "START_WITHIN_S", 0.05)
    body, started, _ = answer("UserPromptSubmit", refusals=None)
    assert (body, started) == (b"", ["UserPromptSubmit"])


def run_client(home, *words, **variables):
    variables |= {"HOME": str(home), "REVERIE_HOME": str(home / ".reverie"), "REVERIE_PORT": str(free_port())}
    return subprocess.run(
        [sys.executable, str(CLIENT), *words],
        input=json.dumps({"hook_event_name": "SessionStart", "cwd": str(home)}).encode(),
        env={"PATH": os.defpath} | variables,
        capture_output=True,
        check=False,
        timeout=60,
    )


@pytest.fixture
def starting(tmp_path):
    """A stack that another process starts, so that no client does."""
    held = client.take_lock(str(tmp_path), client.START_LOCK)
    yield tmp_path
    os.close(held)


@pytest.mark.parametrize("event", [b"", b"{", b"\xff"])
def test_hook_client_with_invalid_input_prints_nothing(starting, event):
    done = subprocess.run(
        [sys.executable, str(CLIENT), "codex", "--home", str(starting)], input=event, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    ("host", "file"),
    [
        ("claude-code", ".claude/settings.json"),
        ("codex", ".codex/hooks.json"),
        ("gemini", ".gemini/settings.json"),
        ("qwen-code", ".qwen/settings.json"),
        ("copilot", ".copilot/settings.json"),
        ("cursor", ".cursor/hooks.json"),
        ("antigravity", ".gemini/config/hooks.json"),
        ("opencode", ".config/opencode/plugin/reverie.js"),
        ("kilo", ".config/kilo/plugin/reverie.js"),
        ("pi", ".pi/agent/extensions/reverie.js"),
        ("cline", ".cline/plugins/reverie.js"),
    ],
)
def test_plugin_hook_yields_to_hooks_written_by_setup(tmp_path, host, file):
    place = tmp_path / file
    place.parent.mkdir(parents=True)
    place.write_text('{"command": "/opt/bin/reverie-hook"}')
    assert run_client(tmp_path, host, "--plugin").returncode == 0
    # It would have asked for the stack.
    assert not (tmp_path / ".reverie").exists()


def test_a_hook_of_claude_code_that_cursor_runs_yields_to_cursor_s_own(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    event = b'{"hook_event_name": "beforeSubmitPrompt", "cursor_version": "3.20.17"}'
    assert not client._yields(["claude-code"], "claude-code", event)
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "hooks.json").write_text('{"command": "/opt/bin/reverie-hook cursor"}')
    assert client._yields(["claude-code"], "claude-code", event)
    assert not client._yields(["cursor"], "cursor", event)
    assert not client._yields(["claude-code"], "claude-code", b'{"hook_event_name": "UserPromptSubmit"}')


def test_a_host_that_reads_json_from_each_hook_gets_an_empty_object(starting):
    words = [sys.executable, str(CLIENT), "antigravity", "--home", str(starting)]
    done = subprocess.run(words, input=b"{}", capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{}", b"")


def write_event(process, event):
    """Write an event as hosts do, a piece at a time; a pipe that breaks is an error."""
    for start in range(0, len(event), 1 << 16):
        os.write(process.stdin.fileno(), event[start : start + (1 << 16)])
    process.stdin.close()


# Kind: a host writes a large file, and its event is longer than any buffer.
@pytest.mark.parametrize("size", [1_200_000, 5_000_000])
def test_a_call_is_guarded_however_long_its_event_is(home, tmp_path, size):
    lesson = {"content": "data/ledger.json is written by the bank alone", "kind": "lesson"}
    call = {"tool_name": "Write", "tool_input": {"content": "é" * size, "file_path": "data/ledger.json"}}
    event = json.dumps({"hook_event_name": "PreToolUse", "session_id": "big", "cwd": str(tmp_path)} | call).encode()
    with serve_home(home) as port:
        headers = {"Authorization": f"Bearer {home.paths.token()}"}
        body = lesson | {"details": {"severity": "critical"}}
        assert urllib3.request("POST", f"http://127.0.0.1:{port}/v1/memories", json=body, headers=headers).status == 201
        variables = os.environ | {"REVERIE_HOME": str(home.home), "REVERIE_PORT": str(port)}
        said = b""
        # On a busy machine the client may give up before the server answers.
        for _ in range(20):
            command = [sys.executable, "-m", "web.hooks.client", "claude-code"]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables) as process:
                write_event(process, event)
                said = process.stdout.read()
            assert process.returncode == 0
            if said:
                break
    assert json.loads(said)["hookSpecificOutput"]["permissionDecision"] == "ask"
