"""The fields of hook events in the spelling of Claude Code, and the fields of a long event that are sent.

Standard library only: the hook client imports this module for long events, while an agent waits.
"""

import json
from dataclasses import replace
from typing import Any

from web.http.json_text import ReadObject, read_object, read_text_object

# An event as its host sends it, or the answer to it.
Fields = dict[str, Any]

# Claude Code, Codex and Qwen Code send it. In other modes of hosts, an agent asks before it changes a file.
READ_ONLY_MODES = frozenset({"plan"})

# The same fields in the spelling of VS Code, Copilot and Cursor.
_SPELLINGS = {
    "hookEventName": "hook_event_name",
    "sessionId": "session_id",
    "conversation_id": "session_id",
    "agentId": "agent_id",
    "agentType": "agent_type",
    "transcriptPath": "transcript_path",
    "toolName": "tool_name",
    "toolInput": "tool_input",
    "toolArgs": "tool_input",
    "toolResponse": "tool_response",
    "toolResult": "tool_response",
    "permissionMode": "permission_mode",
}
# Texts of an event that may be shortened. Half of an id or of a path would name something else.
_LONG_TEXTS = frozenset(
    (
        "prompt",
        "prompt_response",
        "last_assistant_message",
        "content",
        "command",
        "cmd",
        "input",
        "error",
        "llmContent",
        "stderr",
        "stdout",
        "output",
    )
)
_NAMES = (
    "hook_event_name",
    "cwd",
    "session_id",
    "agent_id",
    "agent_type",
    "prompt_id",
    "tool_use_id",
    "source",
    "tool_name",
    "transcript_path",
    "permission_mode",
)
_TARGETS = frozenset(("command", "cmd", "input", "file_path", "notebook_path", "path", "prompt", "subagent_type"))
_PARTS = {
    "tool_input": _TARGETS,
    "tool_response": frozenset(
        ("is_error", "interrupted", "exit_code", "exitCode", "error", "llmContent", "stderr", "stdout", "output")
    ),
}
# The fields that the server reads; other fields of a long event are not sent.
_FIELDS = frozenset(
    (*_NAMES, *_PARTS, "prompt", "prompt_response", "last_assistant_message", "said", "error", "workspace_roots")
)
_LONGEST_NAME = 10_000
_MOST_ITEMS = 400
# Levels: an event, its messages, a message, its content.
_DEEPEST = 4
# The maximum length of each text; shorter if an event has many long texts.
_TEXT_CHARS = (32_000, 4_000, 400)


def unify_fields(read: ReadObject) -> ReadObject:
    """Return the fields of an event in the spelling of Claude Code, without those that are null."""
    fields = {name: value for name, value in read.fields.items() if value is not None}
    for theirs, ours in _SPELLINGS.items():
        if theirs in fields:
            fields.setdefault(ours, fields.pop(theirs))
    folders = fields.get("workspace_roots")
    if isinstance(folders, list) and folders:
        fields.setdefault("cwd", folders[0])
    if isinstance(fields.get("tool_input"), str):
        arguments = read_text_object(fields["tool_input"])
        # A bare text is a shell command.
        fields["tool_input"] = {"command": arguments} if isinstance(arguments, str) else arguments
    name = fields.get("hook_event_name")
    if isinstance(name, str):
        # Names of hosts differ only in the first letter: `preToolUse`.
        fields["hook_event_name"] = name[:1].upper() + name[1:]
    return ReadObject(fields, frozenset(_SPELLINGS.get(name, name) for name in read.broken), read.is_whole)


def shorten_event(event: bytes, most: int) -> bytes:
    """Return an event as JSON with at most `most` bytes, unchanged if it is not longer.

    The middle of long texts is removed, because a command may follow a long document.
    """
    if len(event) <= most:
        return event
    try:
        read = unify_fields(read_object(event))
    except ValueError:
        return event[:most]
    picked = {name: _pick(name, value) for name, value in read.fields.items() if name in _FIELDS}
    fields = mark_lost_arguments(replace(read, fields=picked))
    for chars in _TEXT_CHARS:
        shortened = json.dumps(_shorten("", fields, chars, _DEEPEST)).encode()
        if len(shortened) <= most:
            break
    return shortened[:most]


def mark_lost_arguments(read: ReadObject) -> Fields:
    """Return the fields of an event; arguments that could not be read become a list, which the server recognizes."""
    arguments = read.fields.get("tool_input")
    is_lost = not read.has_read("tool_input") and not (isinstance(arguments, dict) and arguments)
    return read.fields | {"tool_input": []} if is_lost else read.fields


def _pick(name: str, value: Any) -> Any:
    """Return a field; of a tool's object only the parts that the server reads."""
    if name in _PARTS and isinstance(value, dict):
        return {part: value[part] for part in value if part in _PARTS[name]}
    return value


def _shorten(name: str, value: Any, chars: int, depth: int) -> Any:
    """Return a value with its long texts cut, without fields whose names are too long."""
    if isinstance(value, str):
        if name in _LONG_TEXTS:
            return cut_middle(value, chars)
        return value if len(value) <= _LONGEST_NAME else None
    if isinstance(value, list | dict) and depth == 0:
        return None
    if isinstance(value, list):
        ends = value if len(value) <= _MOST_ITEMS else value[: _MOST_ITEMS // 2] + value[-_MOST_ITEMS // 2 :]
        return [_shorten(name, item, chars, depth - 1) for item in ends]
    if isinstance(value, dict):
        return {part: _shorten(part, item, chars, depth - 1) for part, item in value.items() if item is not None}
    return value


def cut_middle(text: str, most: int) -> str:
    """Return a text, or its start and its end if it is too long."""
    return text if len(text) <= most else f"{text[: most // 2]}\n{text[-most // 2 :]}"
