"""The hook events of other hosts than Claude Code: in its words to whoever answers them, and the answer in theirs."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from flask import Response

from web.endpoint import Api, Call, Endpoint, json_response
from web.hooks.claude_code import answer_event

api = Api("hook_hosts")

GEMINI_EVENTS = {
    "BeforeAgent": "UserPromptSubmit",
    "BeforeTool": "PreToolUse",
    "AfterTool": "PostToolUse",
    "AfterAgent": "Stop",
    "PreCompress": "PreCompact",
}
GEMINI_NAMES = {ours: theirs for theirs, ours in GEMINI_EVENTS.items()}
GEMINI_TOOLS = {"run_shell_command": "Bash", "replace": "Edit", "write_file": "Write"}
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d+)$", re.MULTILINE)
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)

Fields = dict[str, Any]


@api.route(
    Endpoint("POST", "/hooks/codex", "Take a Codex hook event; answer with context or an empty body", of_folder=True)
)
def codex(call: Call) -> Response:
    """Answer one event."""
    return _answer(call, _read_codex, lambda told: {"hookSpecificOutput": told})


@api.route(
    Endpoint(
        "POST", "/hooks/gemini", "Take a Gemini CLI hook event; answer with context or an empty body", of_folder=True
    )
)
def gemini(call: Call) -> Response:
    """Answer one event."""
    return _answer(call, _read_gemini, _write_gemini)


def _answer(call: Call, read: Callable[[Fields], Fields], write: Callable[[Fields], Fields]) -> Response:
    def translate(body: bytes) -> bytes:
        event = json.loads(body)
        # Codex knows no question, and Gemini CLI waits for its answer for ever where it runs without a person.
        return json.dumps(read(event) | {"can_ask": False}).encode() if isinstance(event, dict) else body

    answer = answer_event(call, translate).get_json(silent=True)
    if not answer:
        return Response(status=200)
    return json_response(write(answer["hookSpecificOutput"]))


def _read_codex(event: Fields) -> Fields:
    """Return an event with the file that a patch touches first."""
    given = event.get("tool_input")
    patch = given.get("command", given.get("input")) if isinstance(given, Mapping) else None
    found = _PATCHED.search(patch) if event.get("tool_name") == "apply_patch" and isinstance(patch, str) else None
    return event if found is None else event | {"tool_input": {"path": found[1].strip()}}


def _read_gemini(event: Fields) -> Fields:
    """Return an event by Claude Code's names, with what the response says of a failure."""
    name, tool = str(event.get("hook_event_name")), str(event.get("tool_name", ""))
    read = event | {"hook_event_name": GEMINI_EVENTS.get(name, name)}
    if tool:
        read["tool_name"] = GEMINI_TOOLS.get(tool, re.sub(r"\Amcp_([^_]+)_", r"mcp__\1__", tool))
    if name == "AfterTool":
        read["tool_response"] = {"is_error": _has_failed(event.get("tool_response"))}
    return read


def _has_failed(response: Any) -> bool:
    if not isinstance(response, Mapping):
        return False
    said = response.get("llmContent")
    code = _EXIT_CODE.search(said) if isinstance(said, str) else None
    return bool(response.get("error")) or (code is not None and code[1] != "0")


def _write_gemini(told: Fields) -> Fields:
    """Return an answer: before a tool there is no context, but a decision."""
    event, decision = told["hookEventName"], told.get("permissionDecision")
    if event == "PreToolUse":
        return {"decision": decision, "reason": told.get("permissionDecisionReason", "")} if decision else {}
    return {"hookSpecificOutput": told | {"hookEventName": GEMINI_NAMES.get(event, event)}}
