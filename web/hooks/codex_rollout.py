"""Read the actions and messages of a Codex session from its rollout file, in the form of hook events.

Since Codex 0.169 each action is an item with its status: `item_completed`. Older rollouts contain calls and outputs,
including rejected calls, and the text of an output shows whether its call succeeded.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from pipeline.records.transcripts import TranscriptMark

# Only the end of a longer part is read.
LONGEST_STRETCH = 64 << 20
# The bytes before a mark that are compared. Lines of a host's log differ by their times and ids.
COMPARED_BYTES = 1024
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_EXIT_CODE = re.compile(r"\A[^\n]*\n?(?:.*\n){0,4}?.*\b(?:exited with code|exit code:?) (-?\d+)", re.IGNORECASE)
# Codex writes one of these instead of an output if a call did not run.
_NOT_RUN = re.compile(
    r"\A(?:unsupported (?:custom tool )?call|patch rejected|approval policy is|failed to parse"
    r"|(?:exec )?command rejected|rejected by user|aborted by user)",
    re.IGNORECASE,
)
_PATCHED_WELL = re.compile(r"\bSuccess\. Updated|\ADone!", re.IGNORECASE)
TURN_CONTEXT = "turn_context"
CALLS = ("function_call", "custom_tool_call", "local_shell_call")

_ROLES = {
    "user_message": "user",
    "UserMessage": "user",
    "agent_message": "assistant",
    "AgentMessage": "assistant",
}

Payload = Mapping[str, Any]
Event = dict[str, Any]


def list_patched_files(patch: str) -> list[str]:
    """List the files that a patch in Codex' format changes, in order."""
    return [file.strip() for file in _PATCHED.findall(patch)]


def read_new_lines(rollout: Path, mark: TranscriptMark | None) -> tuple[list[str], TranscriptMark]:
    """Return the complete lines after a mark and the mark after them; without a valid mark, those of the last turn."""
    begin = find_start(rollout, mark)
    lines, behind = read_lines(rollout, begin)
    return (_last_turn(lines) if begin is None else lines), behind


def find_start(log: Path, mark: TranscriptMark | None) -> int | None:
    """Return the offset of a mark, None without a mark or if the log is another one."""
    if mark is None or mark.offset > log.stat().st_size:
        return None
    with log.open("rb") as file:
        return mark.offset if mark.digest in (None, _digest_before(file, mark.offset)) else None


def read_lines(log: Path, begin: int | None) -> tuple[list[str], TranscriptMark]:
    """Return the complete lines of a host's log from an offset, and the mark after them."""
    with log.open("rb") as file:
        file.seek(max(begin or 0, log.stat().st_size - LONGEST_STRETCH))
        data = file.read()
        # The last line may be incomplete.
        whole = data[: data.rfind(b"\n") + 1]
        end = file.tell() - (len(data) - len(whole))
        mark = TranscriptMark(end, _digest_before(file, end))
    return whole.decode("utf-8", errors="replace").split("\n")[:-1], mark


def _digest_before(file: BinaryIO, offset: int) -> str:
    file.seek(max(0, offset - COMPARED_BYTES))
    return hashlib.blake2b(file.read(min(offset, COMPARED_BYTES)), digest_size=8).hexdigest()


def _last_turn(lines: Sequence[str]) -> list[str]:
    begins = (number for number in range(len(lines) - 1, -1, -1) if _is_prompt(_payload(lines[number])))
    return list(lines[next(begins, 0) :])


def _is_prompt(payload: Payload) -> bool:
    return payload.get("type") == "user_message" or _item(payload).get("type") == "UserMessage"


def read_events(lines: Iterable[str]) -> list[Event]:
    """Return the actions in order, as events in the form of Claude Code. Calls that did not run are skipped."""
    payloads = [_payload(line) for line in lines]
    if any(payload.get("type") == "item_completed" for payload in payloads):
        return [event for payload in payloads for event in _read_item(_item(payload))]
    return list(_read_calls(payloads))


def read_said(lines: Iterable[str]) -> list[dict[str, str]]:
    """Return the messages of the person and the agent in order, in the form of a hook event.

    A forked session copies turns with their ids and new times, so a message is identified by its turn id, if any.
    """
    messages: list[dict[str, str]] = []
    turn_id = folder = open_turn = None
    for line in lines:
        entry = _entry(line)
        payload = _payload_of(entry)
        turn_id = payload.get("turn_id") or turn_id
        if _ends_unfinished(payload):
            _drop_turn(messages, turn_id)
        elif payload.get("type") == "task_started" and open_turn is not None:
            # The program ended before the turn did.
            _drop_turn(messages, open_turn)
        open_turn = _find_open_turn(payload, open_turn)
        folder = payload.get("cwd") if entry.get("type") == TURN_CONTEXT else folder
        role = _ROLES.get(str(payload.get("type"))) or _ROLES.get(str(_item(payload).get("type")))
        text = payload.get("message") or _spoken(_item(payload))
        if not (role and isinstance(text, str) and text.strip()):
            continue
        # A message may appear both as an event and as an item.
        if (role, text) in [(message["role"], message["content"]) for message in messages[-2:]]:
            continue
        words = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()
        known = {"at": entry.get("timestamp"), "id": turn_id and f"{turn_id} {role} {words}", "cwd": folder}
        fields = {key: value for key, value in known.items() if isinstance(value, str) and value}
        messages.append({"role": role, "content": text, **fields})
    return messages


def _ends_unfinished(payload: Payload) -> bool:
    """Return whether a record ends a turn that the user interrupted, or that failed."""
    kind = payload.get("type")
    return kind == "turn_aborted" or (kind == "task_complete" and bool(payload.get("error")))


def _find_open_turn(payload: Payload, open_turn: str | None) -> str | None:
    """Return the id of the turn that runs after a record."""
    if payload.get("type") == "task_started":
        return str(payload.get("turn_id") or "") or None
    return None if payload.get("type") in ("task_complete", "turn_aborted") else open_turn


def _drop_turn(messages: list[dict[str, str]], turn_id: str | None) -> None:
    """Remove the messages of a turn: those with its id, or from the last message of the user on if it has none."""
    prompts = (number for number in range(len(messages) - 1, -1, -1) if messages[number]["role"] == "user")
    start = next(prompts, len(messages))
    messages[:] = [
        message
        for number, message in enumerate(messages)
        if (not message.get("id", "").startswith(f"{turn_id} ") if turn_id else number < start)
    ]


def _spoken(item: Payload) -> str:
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return "\n".join(texts) or str(item.get("text") or "")


def _payload(line: str) -> Payload:
    return _payload_of(_entry(line))


def _entry(line: str) -> Payload:
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}


def _payload_of(entry: Payload) -> Payload:
    payload = entry.get("payload")
    return payload if isinstance(payload, dict) else {}


def _item(payload: Payload) -> Payload:
    item = payload.get("item") if payload.get("type") == "item_completed" else None
    return item if isinstance(item, dict) else {}


def _read_item(item: Payload) -> Iterator[Event]:
    ok, kind = _status(item), item.get("type")
    if ok is None:
        return
    if kind == "CommandExecution":
        output = {name: item.get(name) for name in ("exit_code", "aggregated_output")}
        yield _event("shell", {"command": item.get("command")}, ok=ok, output=output)
    elif kind == "FileChange" and isinstance(item.get("changes"), dict):
        for file in item["changes"]:
            yield _event("apply_patch", {"path": file}, ok=ok)
    elif kind == "McpToolCall":
        yield _event(f"mcp__{item.get('server')}__{item.get('tool')}", {}, ok=ok)


def _status(item: Payload) -> bool | None:
    """Return whether an item succeeded; None if it did not run."""
    status, code = item.get("status"), item.get("exit_code")
    if status not in ("completed", "failed"):
        return None
    return status == "completed" and code in (None, 0)


def _read_calls(payloads: Iterable[Payload]) -> Iterator[Event]:
    calls: dict[str, Payload] = {}
    for payload in payloads:
        kind, call_id = str(payload.get("type")), str(payload.get("call_id") or payload.get("id") or "")
        if kind in CALLS:
            calls[call_id] = payload
        elif kind.removesuffix("_output") in CALLS and call_id in calls:
            yield from _read_call(calls.pop(call_id), payload.get("output"))


def _read_call(call: Payload, output: Any) -> Iterator[Event]:
    name, arguments, ok = str(call.get("name") or "local_shell"), _arguments(call), _succeeded(output)
    patch = arguments.get("input") if name == "apply_patch" else None
    if isinstance(patch, str):
        # The output of a patch says whether it was applied.
        if ok is True and (_exit_code(output) == 0 or _PATCHED_WELL.search(str(output))):
            yield from (_event(name, {"path": file}, ok=True) for file in list_patched_files(patch))
    elif ok is not None:
        yield _event(name, arguments, ok=ok, output=output)


def _event(tool: str, arguments: dict[str, Any], *, ok: bool, output: Any = None) -> Event:
    event = {"hook_event_name": "PostToolUse", "tool_name": tool, "tool_input": arguments}
    return event if ok else event | {"hook_event_name": "PostToolUseFailure"} | _read_failure(output)


def _read_failure(output: Any) -> Event:
    """Return the exit status and the output of a failed call."""
    read = _read_json(output)
    text = read.get("aggregated_output") or read.get("output") or (output if isinstance(output, str) else "")
    return {"tool_response": {"exit_code": _exit_code(output), "output": text}}


def _arguments(call: Payload) -> dict[str, Any]:
    if isinstance(call.get("action"), dict):
        return dict(call["action"])
    arguments = call.get("arguments", call.get("input"))
    try:
        parsed = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        parsed = None
    return parsed if isinstance(parsed, dict) else {"input": arguments}


def _succeeded(output: Any) -> bool | None:
    """Return whether a call succeeded, by its output; None if it did not run."""
    if isinstance(output, str) and _NOT_RUN.match(output):
        return None
    read = _read_json(output)
    if read.get("success") is False:
        return False
    return _exit_code(output) in (None, 0)


def _exit_code(output: Any) -> int | None:
    read = _read_json(output)
    metadata = read.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else read.get("exit_code")
    if isinstance(code, int):
        return code
    match = _EXIT_CODE.search(output) if isinstance(output, str) else None
    return None if match is None else int(match[1])


def _read_json(output: Any) -> Payload:
    try:
        read = json.loads(output) if isinstance(output, str) else output
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}
