"""The hook events of Gemini CLI, translated to Claude Code's events and back."""

import re
from collections.abc import Mapping
from typing import Any

from web.hooks.event_fields import Fields

EVENTS = {
    "BeforeAgent": "UserPromptSubmit",
    "BeforeTool": "PreToolUse",
    "AfterTool": "PostToolUse",
    "AfterAgent": "Stop",
    "PreCompress": "PreCompact",
}
NAMES = {ours: theirs for theirs, ours in EVENTS.items()}
TOOLS = {"run_shell_command": "Bash", "replace": "Edit", "write_file": "Write"}
# Gemini CLI sends this as the answer of a turn that was interrupted or that failed.
UNANSWERED = "[no response text]"
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d+)$", re.MULTILINE)


def read_gemini(event: Fields) -> Fields:
    """Return an event with Claude Code's names, and with the failure in the response."""
    name, tool = event.get("hook_event_name"), event.get("tool_name")
    # The events contain what was said, so no event needs the transcript.
    read = {field: value for field, value in event.items() if field != "transcript_path"}
    if isinstance(name, str):
        read["hook_event_name"] = EVENTS.get(name, name)
    if name == "AfterAgent":
        # The event at the end of a turn contains the turn.
        spoken = (("user", event.get("prompt")), ("assistant", event.get("prompt_response")))
        messages = [{"role": role, "content": text} for role, text in spoken if isinstance(text, str) and text]
        read["said"] = messages[:1] if event.get("prompt_response") == UNANSWERED else messages
    if isinstance(tool, str):
        read["tool_name"] = TOOLS.get(tool, re.sub(r"\Amcp_([^_]+)_", r"mcp__\1__", tool))
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


def write_gemini(output: Fields) -> Fields:
    """Return an answer. Before a tool it has a decision instead of context."""
    event, decision = output["hookEventName"], output.get("permissionDecision")
    if event == "PreToolUse":
        return {"decision": decision, "reason": output.get("permissionDecisionReason", "")} if decision else {}
    return {"hookSpecificOutput": output | {"hookEventName": NAMES.get(event, event)}}
