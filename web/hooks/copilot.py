"""The hook events of Copilot CLI, which are those of Claude Code with results and answers of another form."""

import re
from collections.abc import Mapping
from typing import Any

from web.hooks.event_fields import Fields
from web.hooks.plugin_events import translate_tool

# The last line of a shell command's result.
_EXIT_CODE = re.compile(r"<shellId: \S+ completed with exit code (-?\d+)>\s*\Z")


def read_copilot(event: Fields) -> Fields:
    """Return an event with Claude Code's tools, and with the failure of a tool in the response."""
    read = dict(translate_tool(event))
    result = read.pop("tool_result", None)
    if isinstance(result, Mapping):
        read["tool_response"] = _read_result(result)
    return read


def _read_result(result: Mapping[str, Any]) -> Fields:
    """Return whether a call failed. A shell command that failed is reported as a success with its exit code."""
    output = result.get("text_result_for_llm")
    text = output if isinstance(output, str) else ""
    match = _EXIT_CODE.search(text)
    code = None if match is None else int(match[1])
    failed = result.get("result_type") != "success" or code not in (0, None)
    return {"is_error": failed, "exit_code": code} | ({"output": text} if failed else {})


def write_copilot(output: Fields) -> Fields:
    """Return an answer: the host reads context and decision at its top."""
    return {name: value for name, value in output.items() if name != "hookEventName"}
