"""The spool's files: private, bounded, in order, without secrets, and nothing that must not reach the disk."""

import errno
import json
import sqlite3
import stat
from contextlib import suppress

import pytest

from config.settings import Settings
from web.hooks.spool import files
from web.hooks.spool.events import spool_event
from web.hooks.spool.files import SpooledRequest, SpoolFull, add_request, describe_spool, list_files, read_request
from web.hooks.spool.privacy import may_spool
from web.hooks.spool.writes import Spooled, SpoolRefused, add_client_ids, has_client_ids, spool_write

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def request(number=0):
    return SpooledRequest("POST", "/v1/memories", {"X-Reverie-Workspace": "w"}, {"content": f"text {number}"})


def read_all(home):
    return [read_request(str(home), file) for file in list_files(str(home))]


def write(home, body, path="/v1/memories", **settings):
    return spool_write(Settings(home=home, **settings), "POST", path, body, "default")


def test_requests_come_back_in_order_and_only_the_owner_can_read_them(tmp_path):
    for number in range(20):
        add_request(str(tmp_path), request(number))
    assert read_all(tmp_path) == [request(number) for number in range(20)]
    folder = tmp_path / "spool"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


@pytest.mark.parametrize(("name", "most"), [("MOST_FILES", 3), ("MOST_BYTES", 400)])
def test_a_full_spool_refuses_the_newest_request(tmp_path, monkeypatch, name, most):
    monkeypatch.setattr(files, name, most)
    for number in range(10):
        with suppress(SpoolFull):
            add_request(str(tmp_path), request(number))
    kept = read_all(tmp_path)
    assert 0 < len(kept) < 10
    assert kept == [request(number) for number in range(len(kept))]
    with pytest.raises(SpoolRefused, match="is full"):
        write(tmp_path, {"content": "x" * 400})


def test_secrets_do_not_reach_the_disk(tmp_path):
    body = {"content": f"The token is {SECRET}", "metadata": {"deep": [SECRET]}, "session_id": "s-1"}
    assert isinstance(write(tmp_path, body), Spooled)
    event = {"hook_event_name": "PostToolUse", "tool_input": {"command": f"curl -H {SECRET}"}, "session_id": "s1"}
    assert spool_event(str(tmp_path), "/hooks/codex", json.dumps(event).encode(), {})
    assert len(list_files(str(tmp_path))) == 2
    assert not [file for file in (tmp_path / "spool").iterdir() if SECRET in file.read_text()]
    assert [one.body["session_id"] for one in read_all(tmp_path)] == ["s-1", "s1"]


NAMES = [
    *("id", "session_id", "agent_id", "tool_use_id", "prompt_id", "timestamp", "cwd", "transcript_path"),
    *("hook_event_name", "tool_name", "kind", "source", "occurred_at", "valid_from", "name", "type", "model"),
]


@pytest.mark.parametrize("text", [SECRET, f"API={SECRET}", f"/home/ann/{SECRET}/x", f"postgres://app:{SECRET}@db/x"])
@pytest.mark.parametrize("name", NAMES)
def test_no_name_of_a_field_spares_its_secret(tmp_path, name, text):
    nested = {"tool_input": {name: text}, "tool_response": [{"content": {name: [text]}}], SECRET: {text: 1}}
    for fields in (nested, {name: text}, {name: {"deep": text}}):
        event = {"session_id": "s1"} | fields | {"hook_event_name": "PostToolUse"}
        assert spool_event(str(tmp_path), "/hooks/codex", json.dumps(event).encode(), {})
    item = {"content": "a", "metadata": {name: text}, "details": {name: [text]}, name: text}
    assert isinstance(write(tmp_path, item), Spooled)
    assert isinstance(write(tmp_path, {"items": [item]}, "/v1/memories/batch"), Spooled)
    assert len(list_files(str(tmp_path))) == 5
    assert not [file.name for file in (tmp_path / "spool").iterdir() if SECRET in file.read_text()]


def test_values_that_a_name_marks_as_secret_do_not_reach_the_disk(tmp_path):
    event = {"hook_event_name": "PostToolUse", "tool_input": {"password": "hunter2", "env": [{"name": "DB_PASSWORD"}]}}
    event["tool_input"]["env"][0]["value"] = "hunter2"
    assert spool_event(str(tmp_path), "/hooks/codex", json.dumps(event).encode(), {})
    for path, value in (("/v1/facts/wifi/password", "hunter2"), (f"/v1/facts/{SECRET}/owner", SECRET)):
        spool_write(Settings(home=tmp_path), "PUT", path, {"value": value}, "default")
    assert not [
        file for file in (tmp_path / "spool").iterdir() if {"hunter2", SECRET} & set(file.read_text().split('"'))
    ]
    event, fact, other = read_all(tmp_path)
    assert event.body["tool_input"]["env"][0]["name"] == "DB_PASSWORD"
    assert fact.path == "/v1/facts/wifi/password"
    assert fact.body.keys() == {"value", "valid_from"}
    assert SECRET not in other.path


PROMPT = b'{"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": "tidy up'


@pytest.mark.parametrize(
    "rest",
    [
        rb' \ud83d please"}',
        b' \xff please"}',
        b' \xed\xa0\xbd please"}',
        rb', please", "x\udc00": "\udc00"}',
        b', please", "x": ' + b"[" * 5000,
        b', please", "x": "cut of',
    ],
)
def test_an_event_that_cannot_be_encoded_waits_too(tmp_path, rest):
    assert spool_event(str(tmp_path), "/hooks/claude-code", PROMPT + rest, {})
    [waiting] = read_all(tmp_path)
    assert waiting.body["session_id"] == "s1"
    assert waiting.body["prompt"].startswith("tidy up")


def test_an_event_whose_session_is_cut_off_does_not_wait(tmp_path):
    for event in (
        b'{"hook_event_name": "PostToolUse", "session_id": "Qui',
        b'{"hook_event_name": "PostToolUse", "a": "b',
    ):
        assert not spool_event(str(tmp_path), "/hooks/claude-code", event, {})


def test_lost_arguments_are_not_delivered_as_missing_ones(tmp_path):
    event = b'{"hook_event_name": "PostToolUse", "session_id": "s1", "tool_name": "Bash", "tool_input": ["git pu'
    assert spool_event(str(tmp_path), "/hooks/claude-code", event, {})
    assert read_all(tmp_path)[0].body["tool_input"] == []


def test_a_write_with_a_lone_surrogate_waits(tmp_path):
    assert isinstance(write(tmp_path, {"content": "cut emoji \ud83d", "metadata": {"\udc80": ["\udc80"]}}), Spooled)
    assert read_all(tmp_path)[0].body["content"] == "cut emoji \ufffd"


def test_a_waiting_write_keeps_its_time(tmp_path):
    write(tmp_path, {"content": "a"})
    write(tmp_path, {"items": [{"content": "b"}, {"content": "c", "occurred_at": "2026-01-01"}]}, "/v1/memories/batch")
    spool_write(Settings(home=tmp_path), "PUT", "/v1/facts/a/b", {"value": 1}, "default")
    memory, batch, fact = (one.body for one in read_all(tmp_path))
    assert memory["occurred_at"] <= batch["items"][0]["occurred_at"] <= fact["valid_from"]
    assert batch["items"][1]["occurred_at"] == "2026-01-01"


def test_only_a_write_for_this_machine_gets_ids():
    body = {"content": "a"}
    assert has_client_ids("POST", "/v1/memories", add_client_ids("POST", "/v1/memories", body))
    batch = add_client_ids("POST", "/v1/memories/batch", {"items": [body, {"id": "mine", **body}]})
    assert has_client_ids("POST", "/v1/memories/batch", batch)
    assert batch["items"][1]["id"] == "mine" != batch["items"][0]["id"]
    for_team = body | {"to": "core"}
    assert add_client_ids("POST", "/v1/memories", for_team) == for_team
    assert not has_client_ids("POST", "/v1/goals", {"title": "x", "id": "y"})


@pytest.mark.parametrize(
    "config", ["incognito = true", 'incognito="on"', "read_only = true", "store = 'postgresql://x'"]
)
@pytest.mark.parametrize("place", ["config.toml", "workspaces/other/config.toml"])
def test_a_setting_keeps_everything_off_the_disk(tmp_path, config, place):
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"port = 7000\n{config}\n")
    assert not may_spool(str(tmp_path), {})
    file.write_text("port = 7000\nincognito = false\nread_only=false\n")
    assert may_spool(str(tmp_path), {})


@pytest.mark.parametrize(
    "variables",
    [{"REVERIE_INCOGNITO": "true"}, {"REVERIE_INCOGNITO": "?"}, {"REVERIE_READ_ONLY": "1"}, {"REVERIE_STORE": "x"}],
)
def test_a_variable_keeps_everything_off_the_disk(tmp_path, variables):
    assert not may_spool(str(tmp_path), variables)


def test_encrypted_and_incognito_texts_are_not_spooled_to_disk(tmp_path):
    workspace = tmp_path / "workspaces" / "default"
    workspace.mkdir(parents=True)
    with sqlite3.connect(workspace / "events.sqlite") as database:
        database.execute("CREATE TABLE incognito (session_id TEXT, since TEXT)")
        database.execute("INSERT INTO incognito VALUES ('Quiet', '')")
    database.close()
    assert write(tmp_path, {"content": "a", "session_id": "Quiet"}) is None
    assert isinstance(write(tmp_path, {"content": "a", "session_id": "open"}), Spooled)
    (workspace / "events.sqlite").write_bytes(b"damaged" * 1000)
    assert write(tmp_path, {"content": "a", "session_id": "open"}) is None
    (workspace / "events.sqlite").unlink()
    (tmp_path / "store.key").write_text("{}")
    assert write(tmp_path, {"content": "a"}) is None


@pytest.mark.parametrize("settings", [{"incognito": True}, {"read_only": True}])
def test_the_settings_of_a_command_count(tmp_path, settings):
    assert write(tmp_path, {"content": "a"}, **settings) is None
    assert describe_spool(str(tmp_path)).files == 0


@pytest.mark.parametrize(
    ("event", "waits"),
    [
        ({"hook_event_name": "UserPromptSubmit"}, True),
        ({"hook_event_name": "AfterTool"}, True),
        ({"hookEventName": "postToolUse"}, True),
        ({"hook_event_name": "PreToolUse"}, False),
        ({"hook_event_name": "SessionStart"}, False),
        ({}, False),
    ],
)
def test_only_events_that_record_something_wait(tmp_path, event, waits):
    assert spool_event(str(tmp_path), "/hooks/claude-code", json.dumps(event).encode(), {}) is waits
    (tmp_path / "config.toml").write_text("enabled = false")
    assert not spool_event(str(tmp_path), "/hooks/claude-code", json.dumps(event).encode(), {})
    assert len(list_files(str(tmp_path))) == int(waits)


def test_a_team_write_does_not_wait_here(tmp_path):
    assert write(tmp_path, {"content": "a", "to": "core"}) is None
    assert spool_write(Settings(home=tmp_path), "PUT", "/v1/sources/x/items", {"items": []}, "default") is None
    assert not (tmp_path / "spool").exists()


def test_request_stays_while_the_process_has_no_file_left_to_open(tmp_path, monkeypatch):
    add_request(str(tmp_path), SpooledRequest("POST", "/v1/memories", {}, {"content": "Kept"}))
    [file] = list_files(str(tmp_path))

    def fail(*_arguments, **_options):
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(files, "read_regular", fail)
        # A ValueError would move it aside as damaged.
        with pytest.raises(OSError, match="Too many open files"):
            read_request(str(tmp_path), file)
    assert read_request(str(tmp_path), file).body == {"content": "Kept"}
