"""Hooks leave times by which a host that is no longer recorded is noticed."""

import json
import os
import time

import pytest

from pipeline.kernel.store.host_activity import Sign
from tests.fakes.in_process import flush_notes
from web.hosts.installed_files import InstalledFile, write_state
from web.http.recording import check_hosts, list_connected_hosts

DAY_S = 86_400
AT = "2026-11-20T10:00:00.000Z"


def post(client, event, session="s1", **fields):
    body = {"hook_event_name": event, "session_id": session, **fields}
    return client.post("/hooks/claude-code", body)


@pytest.fixture
def times(container):
    """Return which signs of Claude Code were noted."""
    return lambda: {sign for sign in Sign if container.host_activity.read("claude-code", sign) is not None}


@pytest.fixture
def user(tmp_path, monkeypatch):
    """The home of a user whose Claude Code was connected two days ago."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return tmp_path / "user"


def connect(container, user):
    root = container.settings.paths.root
    write_state(root, {str(user / ".claude/settings.json"): InstalledFile(frozenset({"claude-code"}))})
    before = time.time() - 2 * DAY_S
    os.utime(root / "setup.json", (before, before))


def write_prompt(user, at):
    folder = user / ".claude/projects/-srv-shop"
    folder.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(at))
    record = {
        "type": "user",
        "message": {"role": "user", "content": "Where does billing listen?"},
        "timestamp": stamp,
        "uuid": "u1",
        "sessionId": "s9",
        "cwd": "/srv/shop",
    }
    (folder / "s9.jsonl").write_text(json.dumps(record) + "\n")


def test_a_prompt_and_its_turn_are_noted(client, container, times, tmp_path):
    transcript = tmp_path / ".claude" / "projects" / "slug" / "s1.jsonl"
    transcript.parent.mkdir(parents=True)
    records = [
        {"type": role, "uuid": role, "sessionId": "s1", "timestamp": AT, "message": {"role": role, "content": text}}
        for role, text in (("user", "Where does billing listen?"), ("assistant", [{"type": "text", "text": "Here."}]))
    ]
    transcript.write_text("".join(json.dumps(record) + "\n" for record in records))
    post(client, "UserPromptSubmit", prompt="Where does billing listen?")
    assert times() == {Sign.HOOK}
    post(client, "Stop", transcript_path=str(transcript))
    flush_notes(container)
    assert times() == {Sign.HOOK, Sign.TURN_ENDED, Sign.TURN_TAKEN}


def test_an_incognito_session_proves_that_hooks_run_and_stores_nothing(client, container, times):
    client.post(
        "/hooks/claude-code",
        {"hook_event_name": "UserPromptSubmit", "session_id": "s2", "prompt": "hi"},
        headers={"X-Reverie-Incognito": "true"},
    )
    assert times() == {Sign.HOOK}


def test_a_host_without_hooks_since_its_last_prompt_is_reported(client, container, user):
    connect(container, user)
    write_prompt(user, time.time() - DAY_S)
    (found,) = check_hosts(container.settings.paths)
    assert "its hooks do not run" in found.problem
    post(client, "UserPromptSubmit", prompt="hello")
    (found,) = check_hosts(container.settings.paths)
    assert found.problem is None


def test_the_start_of_a_session_warns_once(client, container, user):
    connect(container, user)
    write_prompt(user, time.time() - DAY_S)
    container.recording.list_problems(lambda: check_hosts(container.settings.paths))
    text = post(client, "SessionStart", source="startup").get_json()["hookSpecificOutput"]["additionalContext"]
    assert "not recording since" in text
    assert post(client, "SessionStart", session="s3", source="startup").get_data() == b""


def test_a_turn_that_cannot_be_stored_is_reported(client, container, user, monkeypatch, tmp_path):
    connect(container, user)
    post(client, "Stop", transcript_path=str(tmp_path / "missing" / "s1.jsonl"))
    flush_notes(container)
    file = container.settings.paths.host_activity / f"claude-code.{Sign.TURN_ENDED}"
    assert file.exists()
    assert not (container.settings.paths.host_activity / f"claude-code.{Sign.TURN_TAKEN}").exists()
    (found,) = check_hosts(container.settings.paths)
    assert "its turns are not stored" in found.problem


def test_hooks_of_a_team_are_not_expected_here(container, user, tmp_path):
    settings = tmp_path / "settings.json"
    settings.write_text('{"hooks": {"Stop": [{"hooks": [{"command": "reverie-hook claude-code --server acme"}]}]}}')
    root = container.settings.paths.root
    hosts = InstalledFile(frozenset({"claude-code"}))
    write_state(root, {str(settings): hosts, str(tmp_path / "CLAUDE.md"): hosts})
    assert list_connected_hosts(root, lambda _name: False) == []


def test_an_incognito_session_is_not_warned(client, container, user):
    connect(container, user)
    write_prompt(user, time.time() - DAY_S)
    container.recording.list_problems(lambda: check_hosts(container.settings.paths))
    event = {"hook_event_name": "SessionStart", "session_id": "s2", "source": "startup"}
    assert client.post("/hooks/claude-code", event, headers={"X-Reverie-Incognito": "true"}).get_data() == b""
    assert "not recording" in post(client, "SessionStart", source="startup").get_data(as_text=True)


def test_a_server_option_of_another_program_is_no_team(container, tmp_path):
    settings = tmp_path / "settings.json"
    settings.write_text('{"command": "reverie-hook claude-code",\n"args": ["--server", "x"]}')
    write_state(container.settings.paths.root, {str(settings): InstalledFile(frozenset({"claude-code"}))})
    (host,) = list_connected_hosts(container.settings.paths.root, lambda _name: False)
    assert host.name == "claude-code"
