"""The tools that a session is offered: those of its profile, without those that its switches turn off."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipeline.errors import READ_ONLY_SESSION
from web.mcp.tool import Tool, ToolCall, ToolResult

IS_OFF = (
    "Reverie is turned off for this project: there are no tools, and nothing is recorded. If the user asks for it, "
    "they can turn it on again with `reverie on`."
)
WRITES_OFF = "Agents may not change this workspace: write_tools or read_only is set. Ask your user to change it."


@dataclass(frozen=True, slots=True)
class Switches:
    """The switches that apply to a session: whether Reverie is on, and whether the agent may store and change."""

    is_enabled: bool = True
    may_write: bool = True
    is_read_only_session: bool = False


# Returns the switches of a request; over stdio there is no request.
FindSwitches = Callable[[Any], Switches]


def _explain_off(_call: ToolCall) -> ToolResult:
    return ToolResult(IS_OFF)


# A host shows an empty list as a broken server, so one tool explains why there are no others.
MEMORY_IS_OFF = Tool("memory_is_off", IS_OFF, _explain_off)


def offer_tools(tools: tuple[Tool, ...], switches: Switches) -> tuple[Tool, ...]:
    """Return the tools to list; a tool that reads and writes keeps only the arguments that read."""
    if not switches.is_enabled:
        return (MEMORY_IS_OFF,)
    if switches.may_write:
        return tools
    return tuple(form for tool in tools if (form := tool.reading_form) is not None)


def explain_missing(switches: Switches) -> str:
    """Return why a tool of the profile is not offered."""
    if not switches.is_enabled:
        return IS_OFF
    return READ_ONLY_SESSION if switches.is_read_only_session else WRITES_OFF


def all_on(_request: Any) -> Switches:
    """Return switches that turn nothing off."""
    return Switches()
