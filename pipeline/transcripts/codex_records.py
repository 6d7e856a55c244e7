"""Read single records of Codex: calls, outputs and items. Hooks and the reader of transcripts share these functions.

The program that Codex starts at the end of each turn imports this module, so it imports no library.
"""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_EXIT_CODE = re.compile(r"\A[^\n]*\n?(?:.*\n){0,4}?.*\b(?:exited with code|exit code:?) (-?\d+)", re.IGNORECASE)
# Codex writes one of these instead of an output if a call did not run.
_NOT_RUN = re.compile(
    r"\A(?:unsupported (?:custom tool )?call|patch rejected|approval policy is|failed to parse"
    r"|(?:exec )?command rejected|rejected by user|aborted by user)",
    re.IGNORECASE,
)
_PATCHED_WELL = re.compile(r"\bSuccess\. Updated|\ADone!", re.IGNORECASE)
_SHELL = re.compile(r"(?:.*/)?(?:ba|z|da|k)?sh\Z")

Payload = Mapping[str, Any]


def is_patch_applied(output: Any) -> bool:
    """Return whether the output of a patch says that it was applied."""
    return read_exit_code(output) == 0 or _PATCHED_WELL.search(str(output)) is not None


def read_item(payload: Payload) -> Payload:
    """Return the item of a record that completes an item; empty for other records."""
    item = payload.get("item") if payload.get("type") == "item_completed" else None
    return item if isinstance(item, dict) else {}


def read_item_status(item: Payload) -> bool | None:
    """Return whether an item succeeded; None if it did not run."""
    status, code = item.get("status"), item.get("exit_code")
    if status not in ("completed", "failed"):
        return None
    return status == "completed" and code in (None, 0)


def read_spoken_text(item: Payload) -> str:
    """Return the text of a message."""
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return "\n".join(texts) or str(item.get("text") or "")


def read_arguments(call: Payload) -> dict[str, Any]:
    """Return the arguments of a call, which may be a JSON text."""
    if isinstance(call.get("action"), dict):
        return dict(call["action"])
    arguments = call.get("arguments", call.get("input"))
    try:
        parsed = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        parsed = None
    return parsed if isinstance(parsed, dict) else {"input": arguments}


def read_success(output: Any) -> bool | None:
    """Return whether a call succeeded, by its output; None if it did not run."""
    if isinstance(output, str) and _NOT_RUN.match(output):
        return None
    if read_json(output).get("success") is False:
        return False
    return read_exit_code(output) in (None, 0)


def read_exit_code(output: Any) -> int | None:
    """Return the exit code that an output states."""
    read = read_json(output)
    metadata = read.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else read.get("exit_code")
    if isinstance(code, int):
        return code
    match = _EXIT_CODE.search(output[:2000]) if isinstance(output, str) else None
    return None if match is None else int(match[1])


def read_json(output: Any) -> Payload:
    """Return the mapping of an output that is JSON; an empty one for other outputs."""
    try:
        read = json.loads(output) if isinstance(output, str) and output.lstrip()[:1] == "{" else output
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def read_command(command: Any) -> str:
    """Return the command line of a call: a text, or words, of which a shell's script is the command."""
    if isinstance(command, str):
        return command
    words = [word for word in command if isinstance(word, str)] if isinstance(command, list) else []
    is_script = len(words) == 3 and _SHELL.match(words[0]) and words[1] in ("-lc", "-c")
    return words[2] if is_script else shlex.join(words)


def is_summary(kind: Any, record: Mapping[str, Any]) -> bool:
    """Return whether a record is the summary of a compaction, which no one said."""
    metadata = record.get("metadata")
    is_marked = isinstance(metadata, Mapping) and bool(metadata.get("compaction_output"))
    return kind == "compacted" or (kind == "response_item" and is_marked)


def is_aborted(output: str) -> bool:
    """Return whether the person stopped a call."""
    return "aborted by user" in output[:100]


def is_removed(line: str) -> bool:
    """Return whether a line of a diff removes something."""
    return line.startswith("-") and not line.startswith("---")
