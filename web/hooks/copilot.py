"""The hook events of Copilot CLI, which are those of Claude Code with results and answers of another form."""

import re
from collections.abc import Mapping
from typing import Any

from flask import Response

from web.call import Call
from web.endpoint import Api, Endpoint
from web.hooks.claude_code import answer_event
from web.hooks.event_fields import Fields
from web.hooks.plugin_events import translate_tool

api = Api("copilot")

# The last line of a shell command's result.
_EXIT_CODE = re.compile(r"<shellId: \S+ completed with exit code (-?\d+)>\s*\Z")


@api.route(
    Endpoint(
        "POST",
        "/hooks/copilot",
        "Answer a Copilot CLI hook event",
        of_folder=True,
        reads=True,
    )
)
def copilot(call: Call) -> Response:
    """Answer one event."""
    # The host reads context and decision at the top of the answer.
    return answer_event(call, "copilot", read_copilot, _drop_event_name)


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


def _drop_event_name(output: Fields) -> Fields:
    return {name: value for name, value in output.items() if name != "hookEventName"}
