"""The tool calls in the events of Reverie's plugins, which send the names and arguments of their host."""

from collections.abc import Mapping

from pipeline.transcripts.tool_names import translate_call
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
