"""Which tools a host is offered, and calling one."""

import logging
from collections.abc import Mapping
from typing import Any

from pipeline.errors import FieldError, InvalidField, ReverieError
from web.mcp.core import CORE
from web.mcp.more import MORE
from web.mcp.tool import Asked, Told, Tool, checked

log = logging.getLogger(__name__)

PROFILES: Mapping[str, tuple[Tool, ...]] = {"core": CORE, "full": (*CORE, *MORE)}


class ToolFailed(ReverieError):
    """Say in one line, to a model, why a tool could not answer."""


def call_tool(tool: Tool, asked: Asked) -> Told:
    """Run a tool; raise ToolFailed, which names the field where there is one, for whatever went wrong."""
    try:
        arguments = checked(tool, asked.arguments)
        return tool.run(Asked(asked.server, asked.shown, asked.agent, asked.folder, arguments))
    except ReverieError as error:
        raise ToolFailed(str(error)) from error
    except Exception as error:
        log.exception("tool %s", tool.name)
        raise ToolFailed(
            f"{tool.name} failed unexpectedly ({type(error).__name__}); the bridge's log says more"
        ) from error


def tool_named(tools: tuple[Tool, ...], name: str) -> Tool:
    """Return a tool; raise InvalidField for a name that no tool has."""
    for tool in tools:
        if tool.name == name:
            return tool
    raise InvalidField(FieldError("name", f"there is no such tool; there are {', '.join(t.name for t in tools)}"))


def described(tool: Tool) -> dict[str, Any]:
    """Return a tool as a host lists it."""
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": _HINTS[tool.effect],
    }


_HINTS: Mapping[str, dict[str, bool]] = {
    "reads": {"readOnlyHint": True, "openWorldHint": False},
    "adds": {"destructiveHint": False, "openWorldHint": False},
    "forgets": {"destructiveHint": True, "openWorldHint": False},
}
