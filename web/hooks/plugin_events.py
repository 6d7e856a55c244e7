"""The tool calls and prompts in the events of Reverie's plugins, which send them in the form of their host."""

from collections.abc import Callable, Mapping
from typing import Any

from pipeline.sessions.readers.tool_calls import translate_call
from web.hooks.event_fields import Fields


def translate_tool(event: Fields, own_prefix: str = "") -> Fields:
    """Return an event with Claude Code's name of its tool and with the arguments that Reverie reads.

    `own_prefix` is the start of the names of Reverie's tools, if the host does not name them as Claude Code does.
    """
    tool, arguments = event.get("tool_name"), event.get("tool_input")
    if not isinstance(tool, str):
        return event
    if own_prefix and tool.startswith(own_prefix):
        return event | {"tool_name": f"mcp__reverie__{tool.removeprefix(own_prefix)}"}
    name, known = translate_call(tool, arguments)
    # Arguments that are no object are reported as unreadable.
    return event | {"tool_name": name} | ({"tool_input": known} if isinstance(arguments, Mapping) else {})


def unwrap_prompts(event: Fields, unwrap: Callable[[str], str]) -> Fields:
    """Return an event with its prompt, and with the user's messages, as the user typed them."""

    def read_message(message: Any) -> Any:
        content = message.get("content") if isinstance(message, dict) and message.get("role") == "user" else None
        return message | {"content": unwrap(content)} if isinstance(content, str) else message

    read = dict(event)
    if isinstance(read.get("prompt"), str):
        read["prompt"] = unwrap(read["prompt"])
    if isinstance(read.get("said"), list):
        read["said"] = [read_message(message) for message in read["said"]]
    return read
