"""Whatever a host sends in the fields of an event: the answer is 200, and the guard decides on what can be read."""
# Reported of comparable tools: hoangsonww/Claude-Code-Agent-Monitor#311

import json

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from pipeline.kernel.store import agent_sessions
from tests.fakes.client import CheckedClient
from tests.fakes.in_process import fast_settings, flush_notes, open_web
from tests.unit.web.test_json_text import anything
from web.hooks.claude_code import HANDLERS
from web.hosts.hook_entries import EVENTS
from web.http.app import create_app

CRITICAL = {"kind": "lesson", "details": {"severity": "critical"}}
PUSH = "git push --force origin main"
FIELDS = ["session_id", "agent_id", "cwd", "prompt", "source", "transcript_path", "tool_response", "said", "permission"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with two critical lessons."""
    container = open_web(fast_settings(tmp_path_factory.mktemp("guarded") / "home"))
    client = CheckedClient(create_app(container), container.token)
    client.write("Never git push --force here", **CRITICAL)
    client.write("data/ledger.json is written by the bank alone", **CRITICAL)
    client.container = container
    yield client
    container.close()


def send(client, fields, host="claude-code"):
    body = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
    answer = client.call("POST", f"/hooks/{host}", data=body)
    assert answer.status_code == 200
    return answer.get_json(silent=True)


def decide(client, fields, host="claude-code"):
    """Return what is decided before a tool and why, None where nothing is said."""
    answer = send(client, fields, host)
    if answer is None:
        return None
    told = answer.get("hookSpecificOutput", answer)
    reason = told.get("permissionDecisionReason", told.get("reason"))
    return told.get("permissionDecision", told.get("decision")), reason


def before(tool="Bash", tool_input=None, **fields):
    given_input = {"command": PUSH} if tool_input is None else tool_input
    return {"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": tool, "tool_input": given_input} | fields


def list_exceptions(client):
    errors = client.get("/v1/errors").get_json()["items"]
    return [one["message"] for one in errors if not one["message"].startswith("event ")]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(HANDLERS)) | anything,
    fields=st.dictionaries(st.sampled_from([*FIELDS, "tool_name", "tool_input", "sessionId"]), anything),
    host=st.sampled_from(sorted(EVENTS)),
)
def test_no_value_in_any_field_is_an_error(guarded, name, fields, host):
    send(guarded, {"hook_event_name": name} | fields, host)
    flush_notes(guarded.container)
    assert list_exceptions(guarded) == []


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fields=st.dictionaries(st.sampled_from([*FIELDS, "permission_mode"]), anything), more=anything)
@example(fields={"cwd": "tests"}, more=None)
def test_the_guard_decides_on_tool_and_command_alone(guarded, fields, more):
    decision, reason = decide(guarded, before(**fields, tool_input={"command": PUSH, "description": more}))
    assert decision == "ask"
    assert "Never git push --force here" in reason
    assert decide(guarded, before(**fields, tool_input={"command": "make build", "description": more})) is None


@pytest.mark.parametrize(
    "event",
    [
        # Kind: a field of null that a host leaves out (openai/codex, `codex exec --ephemeral`).
        before(transcript_path=None, cwd=None, agent_id=None),
        # Kind: half of a surrogate pair in a text that was cut by its host.
        before(tool_input={"command": f"{PUSH} # \ud83d"}, prompt="\ud83d"),
        before(tool_input=json.dumps({"command": PUSH})),
        before(tool_input=PUSH),
        before(tool_input={"command": ["git", "push", "--force"]}),
        before(tool_input={"command": None, "cmd": PUSH}),
        before(tool_input={"command": f"cat > a <<EOF\n{'x' * 100_000}\nEOF\n{PUSH}"}),
        before(tool_input={"command": f'echo "{"x" * 100_000}" && {PUSH}'}),
        before(tool_input={"command": " && ".join([*(f"make step{n}" for n in range(30)), PUSH])}),
        before(tool_input={"command": "; ".join([*(f"make step{n}" for n in range(3000)), PUSH, "make all; " * 3000])}),
        before("Write", {"content": "x" * 1_200_000, "file_path": "data/ledger.json"}),
        {"hookEventName": "PreToolUse", "sessionId": "s", "toolName": "Bash", "toolInput": {"command": PUSH}},
        json.dumps(before()).encode()[:-1],
        json.dumps(before(fill=0)).replace("0}", "[" * 100_000 + "]" * 100_000 + "}").encode(),
        json.dumps(before(fill=0)).replace("0}", "NaN}").encode("utf-16"),
        json.dumps(before(fill=0)).encode("utf-8-sig").replace(b"0}", b'"\xff\xfe"}'),
    ],
    ids=range(16),
)
def test_a_call_that_a_critical_lesson_names_is_asked_about(guarded, event):
    decision, reason = decide(guarded, event)
    assert decision == "ask"
    assert "git push --force here" in reason or "ledger.json" in reason


UNREADABLE = [
    before("Bash", ["git push"]),
    before("Bash", {"command": {"line": "git push"}}),
    before("Write", {"content": "x", "file_path": ["data/ledger.json"]}),
    before("Edit", 7),
    before(tool=["Bash"]),
    json.dumps(before("Write", {"content": "x" * 100, "file_path": "y"})).encode()[:-40],
]


@pytest.mark.parametrize("event", UNREADABLE, ids=range(len(UNREADABLE)))
def test_unreadable_call_is_asked_about_if_a_critical_lesson_may_apply(guarded, event):
    decision, reason = decide(guarded, event)
    assert decision == "ask"
    assert "Only a part of this call could be read" in reason


def test_host_without_prompts_denies_unreadable_input_once(guarded):
    event = before("Bash", [1], session_id="codex-1")
    assert decide(guarded, event, "codex")[0] == "deny"
    assert decide(guarded, event, "codex") is None


@pytest.mark.parametrize(
    "event",
    [
        before("Read", ["x"]),
        before("Bash", {}),
        before("Bash", {"command": "git status"}),
        {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": None},
        {"hook_event_name": "PreToolUse"},
        before("Bash", {"command": "make build"}, extra=["x"], prompt=7),
    ],
    ids=range(6),
)
def test_nothing_is_asked_about_a_call_that_no_lesson_can_name(guarded, event):
    assert decide(guarded, event) is None


def test_where_no_lesson_is_critical_nothing_is_asked(client):
    client.write("Never git push --force here", kind="lesson")
    assert [decide(client, event) for event in UNREADABLE] == [None] * len(UNREADABLE)


@pytest.mark.parametrize(
    "bad",
    [
        {"transcript_path": None, "agent_id": None, "cwd": None},
        {"tool_response": ["x"], "prompt": 7, "source": {}, "said": "x"},
        {"tool_input": {"file_path": "a.py", "content": "x" * 1_500_000}},
        {"tool_input": json.dumps({"file_path": "a.py"})},
        {"tool_input": {"file_path": "a.py", "note": "\ud83d"}},
        {"agent_id": "x" * 300, "transcript_path": "/" * 5000},
    ],
    ids=range(6),
)
def test_a_deed_whose_name_can_be_read_is_one_row_of_the_journal(client, container, bad):
    event = {"hook_event_name": "PostToolUse", "session_id": "s1", "tool_name": "Edit", "tool_input": {"path": "a.py"}}
    assert send(client, event | bad) is None
    flush_notes(container)
    with container.databases.get("default").read() as db:
        assert [one.target for one in agent_sessions.list_actions(db, "s1", "", 10)] == ["a.py"]


# Kinds: events of VS Code, GitHub Copilot CLI and Cursor that Reverie has no use for.
FOREIGN = [
    {"hook_event_name": "beforeShellExecution", "conversation_id": "c", "command": "ls", "workspace_roots": ["/p"]},
    {"hook_event_name": "afterFileEdit", "conversation_id": "c", "generation_id": "g", "file_path": "a", "edits": []},
    {"hookEventName": "TaskCreated", "sessionId": "s", "timestamp": "2026-02-09T10:30:00.000Z"},
    {"timestamp": 1704614600000, "cwd": "/p", "toolName": "bash", "toolArgs": "{}"},
]


def test_unhandled_event_is_logged_only_once(client):
    for _ in range(3):
        for event in FOREIGN:
            assert send(client, event) is None
    messages = [one["message"] for one in client.get("/v1/errors").get_json()["items"]]
    assert len(messages) == len(set(messages)) == len(FOREIGN)
    assert all("Reverie does not handle it" in message for message in messages)
