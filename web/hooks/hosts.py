"""The hook events of hosts other than Claude Code, translated to Claude Code's events and back."""

import re
from collections.abc import Mapping
from typing import Any

from flask import Response

from web.call import Call
from web.endpoint import Api, Endpoint
from web.hooks.claude_code import answer_event
from web.hooks.codex_rollout import list_patched_files
from web.hooks.event_fields import Fields

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
# Gemini CLI sends this as the answer of a turn that was interrupted or that failed.
UNANSWERED = "[no response text]"
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d+)$", re.MULTILINE)


@api.route(
    Endpoint(
        "POST",
        "/hooks/codex",
        "Take a Codex hook event; answer with context or an empty body",
        of_folder=True,
        reads=True,
    )
)
def codex(call: Call) -> Response:
    """Answer one event."""
    # Codex cannot ask its user.
    return answer_event(call, "codex", _read_codex, lambda output: {"hookSpecificOutput": output}, can_ask=False)


@api.route(
    Endpoint(
        "POST",
        "/hooks/gemini",
        "Take a Gemini CLI hook event; answer with context or an empty body",
        of_folder=True,
        reads=True,
    )
)
def gemini(call: Call) -> Response:
    """Answer one event."""
    # Without a person Gemini would wait forever for the answer to a question.
    return answer_event(call, "gemini", read_gemini, _write_gemini, can_ask=False)


def _read_codex(event: Fields) -> Fields:
    """Return an event with the first file that a patch changes."""
    arguments = event.get("tool_input")
    patch = arguments.get("command", arguments.get("input")) if isinstance(arguments, Mapping) else None
    if event.get("tool_name") != "apply_patch" or not isinstance(patch, str):
        return event
    files = list_patched_files(patch)
    return event | {"tool_input": {"path": files[0]}} if files else event


def read_gemini(event: Fields) -> Fields:
    """Return an event with Claude Code's names, and with the failure in the response."""
    name, tool = event.get("hook_event_name"), event.get("tool_name")
    read = dict(event)
    if isinstance(name, str):
        read["hook_event_name"] = GEMINI_EVENTS.get(name, name)
    if name == "AfterAgent":
        # The event at the end of a turn contains the turn.
        spoken = (("user", event.get("prompt")), ("assistant", event.get("prompt_response")))
        messages = [{"role": role, "content": text} for role, text in spoken if isinstance(text, str) and text]
        read["said"] = [] if event.get("prompt_response") == UNANSWERED else messages
        read.pop("transcript_path", None)
    if isinstance(tool, str):
        read["tool_name"] = GEMINI_TOOLS.get(tool, re.sub(r"\Amcp_([^_]+)_", r"mcp__\1__", tool))
    if name == "AfterTool":
        read["tool_response"] = _read_response(event.get("tool_response"))
    return read


def _read_response(response: Any) -> Fields:
    """Return whether a call failed, and the output of a failed call."""
    failed = _has_failed(response)
    output = {name: response[name] for name in ("error", "llmContent") if name in response} if failed else {}
    return {"is_error": failed} | output


def _has_failed(response: Any) -> bool:
    if not isinstance(response, Mapping):
        return False
    content = response.get("llmContent")
    code = _EXIT_CODE.search(content) if isinstance(content, str) else None
    return bool(response.get("error")) or (code is not None and code[1] != "0")


def _write_gemini(output: Fields) -> Fields:
    """Return an answer. Before a tool it has a decision instead of context."""
    event, decision = output["hookEventName"], output.get("permissionDecision")
    if event == "PreToolUse":
        return {"decision": decision, "reason": output.get("permissionDecisionReason", "")} if decision else {}
    return {"hookSpecificOutput": output | {"hookEventName": GEMINI_NAMES.get(event, event)}}
