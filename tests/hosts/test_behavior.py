"""Check web/hosts/behavior.toml, from which the reference is generated, against the real agent programs."""

import json
import sys
import tomllib
from pathlib import Path

import pytest

from tests.hosts.model_server import Call, Fail, Say
from tests.hosts.test_hosts import SHELL

pytestmark = pytest.mark.timeout(600)

BEHAVIOR = tomllib.loads((Path(__file__).parents[2] / "web" / "hosts" / "behavior.toml").read_text(encoding="utf-8"))
HOOKS = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "qwen-code": ".qwen/settings.json",
}
COMMANDS = {"turn": "true", "failed_call_turn": "exit 3"}
TURNS = [(name, key) for name in HOOKS for key in COMMANDS if key in BEHAVIOR[name]]
PROMPT, CONTEXT = "What is on the shelf?", "A teapot is on the shelf."
# Hooks of a session's end may be cut short.
LAST = ["SessionEnd"]
RECORD = """
import json, sys
event = json.load(sys.stdin)
with open(sys.argv[1], "a") as file:
    file.write(json.dumps({"event": event["hook_event_name"], "prompt": event.get("prompt")}) + "\\n")
if event["hook_event_name"] == sys.argv[3] and event.get("prompt") != "":
    output = {"hookEventName": sys.argv[3], "additionalContext": sys.argv[2]}
    print(json.dumps({"hookSpecificOutput": output}))
"""
SERVER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    results = {
        "initialize": {
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "instructions": "i" * 10_000,
            "serverInfo": {"name": "long", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "write", "description": "w", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "r" * int(sys.argv[1])}]},
    }
    if "id" in request:
        answer = {"result": results.get(request["method"], {})}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)
"""


def record_events(machine, name, answered="UserPromptSubmit"):
    """Set up a host, and a hook for every observed event that records it and answers one with a context."""
    machine.install(name)
    machine.write("record.py", RECORD)
    file, events = machine.home / HOOKS[name], BEHAVIOR[name]
    settings = json.loads(file.read_text())
    command = f"{sys.executable} {machine.home}/record.py {machine.home}/events '{CONTEXT}' {answered}"
    named = {*events.get("turn", []), *events.get("failed_call_turn", []), events.get("failed_turn", "Stop")}
    for event in named:
        handler = {"hooks": [{"type": "command", "command": command}]}
        settings["hooks"] = {**settings["hooks"], event: [*settings["hooks"].get(event, []), handler]}
    machine.write(HOOKS[name], json.dumps(settings))


def read_events(machine):
    return [json.loads(line) for line in (machine.home / "events").read_text().splitlines()]


@pytest.mark.parametrize(("name", "key"), TURNS)
def test_hook_events_come_in_the_documented_order(machine, name, key):
    record_events(machine, name)
    machine.model.expect(SHELL[name](COMMANDS[key]), Say())
    machine.ask(PROMPT)
    events = read_events(machine)
    assert [event["event"] for event in events if event["event"] not in LAST] == [
        event for event in BEHAVIOR[name][key] if event not in LAST
    ]
    prompts = [event["prompt"] for event in events if event["event"] == "UserPromptSubmit"]
    assert prompts == [PROMPT, ""][: len(prompts)]


@pytest.mark.parametrize("name", HOOKS)
def test_context_of_a_hook_arrives_in_the_documented_place(machine, name):
    record_events(machine, name)
    machine.model.expect(Say())
    machine.ask(PROMPT)
    body = machine.model.requests[0].body
    messages = body.get("messages") or body["input"]
    texts = [json.dumps(message) for message in messages]
    (place,) = [number for number, text in enumerate(texts) if CONTEXT in text]
    assert messages[place]["role"] == BEHAVIOR[name]["context_role"]
    whole = "".join(texts)
    is_after = whole.index(PROMPT) < whole.index(CONTEXT)
    assert ("after" if is_after else "before") == BEHAVIOR[name]["context_place"]


@pytest.mark.parametrize("name", HOOKS)
def test_context_before_a_tool_arrives_where_it_is_documented(machine, name):
    record_events(machine, name, "PreToolUse")
    machine.model.expect(SHELL[name]("touch made"), Say())
    machine.ask(PROMPT)
    assert (machine.project / "made").exists()
    body = machine.model.requests[-1].body
    messages = body.get("messages") or body["input"]
    texts = [json.dumps(message) for message in messages]
    (result,) = [
        number
        for number, text in enumerate(texts)
        if '"tool_result"' in text or '_output"' in text or '"role": "tool"' in text
    ]
    places = [number for number, text in enumerate(texts) if CONTEXT in text]
    found = "not at all" if not places else f"{'before' if places[0] < result else 'after'} the result of the call"
    assert found == BEHAVIOR[name]["act_context"]


def test_claude_code_reports_a_failed_turn_by_its_own_event(machine):
    record_events(machine, "claude-code")
    machine.model.expect(*[Fail()] * 10)
    machine.start_host(PROMPT).communicate(timeout=120)
    names = [event["event"] for event in read_events(machine)]
    assert "Stop" not in names
    # Its hook may be killed before it has read its input.
    assert set(names) <= {*BEHAVIOR["claude-code"]["turn"], BEHAVIOR["claude-code"]["failed_turn"]}


@pytest.mark.parametrize("extra", [-1000, 1000])
def test_claude_code_cuts_instructions_and_long_results(machine, extra):
    machine.install("claude-code")
    machine.write("server.py", SERVER)
    limit = BEHAVIOR["claude-code"]["result_limit"]
    arguments = [str(machine.home / "server.py"), str(limit + extra)]
    settings = json.loads((machine.home / ".claude.json").read_text())
    settings["mcpServers"]["long"] = {"command": sys.executable, "args": arguments, "alwaysLoad": True}
    machine.write(".claude.json", json.dumps(settings))
    machine.model.expect(Call("mcp__long__write"), Say())
    machine.ask(PROMPT)
    first, last = machine.model.requests[0].text, "".join(machine.model.requests[-1].results)
    assert "i" * BEHAVIOR["claude-code"]["instructions_limit"] in first
    assert "i" * (BEHAVIOR["claude-code"]["instructions_limit"] + 1) not in first
    assert ("r" * (limit + extra) in last) == (extra < 0)
