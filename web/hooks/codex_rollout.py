"""Read the actions of a Codex session from its rollout file, in the form of hook events.

Since Codex 0.169 each action is an item with its status: `item_completed`. Older rollouts contain calls and outputs,
including rejected calls, and the text of an output shows whether its call succeeded.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pipeline.records.transcripts import TranscriptMark
from pipeline.transcripts.codex_records import (
    CALLS,
    Payload,
    is_patch_applied,
    list_patched_files,
    read_arguments,
    read_exit_code,
    read_item,
    read_item_status,
    read_json,
    read_success,
)
from pipeline.transcripts.log_lines import digest_before

# Only the end of a longer part is read.
LONGEST_STRETCH = 64 << 20

Event = dict[str, Any]


def read_new_lines(rollout: Path, mark: TranscriptMark | None) -> tuple[list[str], TranscriptMark]:
    """Return the complete lines after a mark and the mark after them; without a valid mark, those of the last turn."""
    begin = _find_start(rollout, mark)
    with rollout.open("rb") as file:
        file.seek(max(begin or 0, rollout.stat().st_size - LONGEST_STRETCH))
        data = file.read()
        # The last line may be incomplete.
        whole = data[: data.rfind(b"\n") + 1]
        end = file.tell() - (len(data) - len(whole))
        behind = TranscriptMark(end, digest_before(file, end))
    lines = whole.decode("utf-8", errors="replace").split("\n")[:-1]
    return (_last_turn(lines) if begin is None else lines), behind


def _find_start(log: Path, mark: TranscriptMark | None) -> int | None:
    """Return the offset of a mark, None without a mark or if the log is another one."""
    if mark is None or mark.offset > log.stat().st_size:
        return None
    with log.open("rb") as file:
        return mark.offset if mark.digest in (None, digest_before(file, mark.offset)) else None


def _last_turn(lines: Sequence[str]) -> list[str]:
    begins = (number for number in range(len(lines) - 1, -1, -1) if _is_prompt(_payload(lines[number])))
    return list(lines[next(begins, 0) :])


def _is_prompt(payload: Payload) -> bool:
    return payload.get("type") == "user_message" or read_item(payload).get("type") == "UserMessage"


def read_events(lines: Iterable[str]) -> list[Event]:
    """Return the actions in order, as events in the form of Claude Code. Calls that did not run are skipped."""
    payloads = [_payload(line) for line in lines]
    if any(payload.get("type") == "item_completed" for payload in payloads):
        return [event for payload in payloads for event in _read_item(read_item(payload))]
    return list(_read_calls(payloads))


def _payload(line: str) -> Payload:
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    payload = entry.get("payload") if isinstance(entry, dict) else None
    return payload if isinstance(payload, dict) else {}


def _read_item(item: Payload) -> Iterator[Event]:
    ok, kind = read_item_status(item), item.get("type")
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


def _read_calls(payloads: Iterable[Payload]) -> Iterator[Event]:
    calls: dict[str, Payload] = {}
    for payload in payloads:
        kind, call_id = str(payload.get("type")), str(payload.get("call_id") or payload.get("id") or "")
        if kind in CALLS:
            calls[call_id] = payload
        elif kind.removesuffix("_output") in CALLS and call_id in calls:
            yield from _read_call(calls.pop(call_id), payload.get("output"))


def _read_call(call: Payload, output: Any) -> Iterator[Event]:
    name, arguments, ok = str(call.get("name") or "local_shell"), read_arguments(call), read_success(output)
    patch = arguments.get("input") if name == "apply_patch" else None
    if isinstance(patch, str):
        # The output of a patch says whether it was applied.
        if ok is True and is_patch_applied(output):
            yield from (_event(name, {"path": file}, ok=True) for file in list_patched_files(patch))
    elif ok is not None:
        yield _event(name, arguments, ok=ok, output=output)


def _event(tool: str, arguments: dict[str, Any], *, ok: bool, output: Any = None) -> Event:
    event = {"hook_event_name": "PostToolUse", "tool_name": tool, "tool_input": arguments}
    return event if ok else event | {"hook_event_name": "PostToolUseFailure"} | _read_failure(output)


def _read_failure(output: Any) -> Event:
    """Return the exit status and the output of a failed call."""
    read = read_json(output)
    text = read.get("aggregated_output") or read.get("output") or (output if isinstance(output, str) else "")
    return {"tool_response": {"exit_code": read_exit_code(output), "output": text}}
