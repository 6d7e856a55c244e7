"""The outcome of a tool call in a hook event: whether it failed, its exit status, and the output of a failed call."""

import re
from collections.abc import Mapping
from typing import Any

from pipeline.write.tool_actions import Outcome
from web.hooks.event import HookEvent

# Programs write their errors to the first of these that hosts report; a command may print them to its output.
_OUTPUTS = ("error", "stderr", "output", "llmContent", "stdout")
# The first lines of an output, in the words of Claude Code, Codex and Gemini CLI.
_EXIT_CODE = re.compile(r"(?im)\A(?:.*\n){0,4}?.*\b(?:exited with code|exit code:?) (-?\d+)|^Exit Code: (-?\d+)$")


def read_outcome(event: HookEvent, *, failed: bool) -> Outcome:
    """Return the outcome of a tool call.

    Hosts without PostToolUseFailure report failures in PostToolUse.
    """
    response = event.tool_response if isinstance(event.tool_response, Mapping) else {}
    code = response.get("exit_code", response.get("exitCode"))
    is_reported = response.get("is_error") is True or response.get("interrupted") is True or code not in (0, None)
    if not (failed or is_reported):
        replaced = event.tool_input.get("old_string")
        return Outcome(ok=True, exit_code=_number(code), replaced=replaced if isinstance(replaced, str) else "")
    output = _read_output(event, response)
    return Outcome(ok=False, exit_code=_number(code) if code is not None else _find_code(output), output=output)


def _read_output(event: HookEvent, response: Mapping[str, Any]) -> str:
    texts = [event.error, *(response.get(name) for name in _OUTPUTS), event.tool_response]
    error = response.get("error")
    if isinstance(error, Mapping):
        texts.append(error.get("message"))
    return "\n".join(dict.fromkeys(text for text in texts if isinstance(text, str) and text.strip()))


def _find_code(output: str) -> int | None:
    match = _EXIT_CODE.search(output)
    return None if match is None else int(match[1] or match[2])


def _number(code: Any) -> int | None:
    return code if isinstance(code, int) and not isinstance(code, bool) else None
