"""The tools that a session is offered: those of its profile, without those that its switches turn off."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pipeline.kernel.errors import READ_ONLY_SESSION, InvalidField
from web.mcp.tool import Tool, ToolCall, ToolFailed, ToolResult, describe_tool, find_tool

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


class ChangedLists(NamedTuple):
    """Whether the lists of tools and of resources have changed."""

    tools: bool
    resources: bool


# Returns the switches of a request.
FindSwitches = Callable[[Any], Switches]


# A host shows an empty list as a broken server, so one tool explains why there are no others.
MEMORY_IS_OFF = Tool("memory_is_off", IS_OFF, lambda _call: ToolResult(IS_OFF))


def _explain_more(_call: ToolCall) -> ToolResult:
    raise AssertionError("`ProfileTools.find` returns the tool with an answer")


MORE_TOOLS = Tool(
    "more_tools",
    "Reveal tools to list memories by kind, edit, link, review, ask past sessions, read facts at a time.",
    _explain_more,
)


def describe_revealed(tools: tuple[Tool, ...]) -> ToolResult:
    """Return the answer of `more_tools`: what can be called from now on."""
    lines = [f"- {tool.name}({', '.join(tool.takes)}): {tool.description}" for tool in tools]
    return ToolResult("\n".join(["You can call these tools now:", *lines]))


def offer_tools(tools: tuple[Tool, ...], switches: Switches) -> tuple[Tool, ...]:
    """Return the tools to list; a tool that reads and writes keeps only the arguments that read."""
    if not switches.is_enabled and tools:
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


class ProfileTools:
    """The tools of a profile for independent requests."""

    def __init__(self, tools: tuple[Tool, ...], more: tuple[Tool, ...], find_switches: FindSwitches) -> None:
        self._tools = tools
        self._more = more
        self._find_switches = find_switches

    @property
    def names(self) -> frozenset[str]:
        """Return the names of the tools of the profile."""
        return frozenset(tool.name for tool in self._tools)

    def list_offered(self, request: Any) -> tuple[Tool, ...]:
        """Return the tools to list now."""
        return offer_tools(self._tools, self._find_switches(request))

    def is_enabled(self, request: Any) -> bool:
        """Return whether Reverie is on. If it is off, there are no resources."""
        return self._find_switches(request).is_enabled

    def find(self, name: str, request: Any) -> Tool:
        """Return a tool to run; raise ToolFailed if a switch turns it off, InvalidField for an unknown name."""
        switches = self._find_switches(request)
        known = (*self._tools, *self._more)
        offered = offer_tools(known, switches)
        if name == MORE_TOOLS.name and MORE_TOOLS in offered:
            revealed = describe_revealed(offer_tools(self._more, switches))
            return replace(MORE_TOOLS, run=lambda _call: revealed)
        try:
            return find_tool(offered, name)
        except InvalidField:
            if any(tool.name == name for tool in known):
                raise ToolFailed(explain_missing(switches)) from None
            raise


PLAIN = "text/plain"
BRIEF: dict[str, Any] = {
    "uri": "reverie://brief",
    "name": "brief",
    "description": "The project's brief: unfinished goals, lessons, decisions, facts.",
    "mimeType": PLAIN,
}
MEMORY: dict[str, Any] = {
    "uriTemplate": "reverie://memory/{id}",
    "name": "memory",
    "description": "A full memory with its details, edges and history.",
    "mimeType": PLAIN,
}
REVIEW: dict[str, Any] = {
    "name": "review",
    "description": "Review candidates and possible duplicates together with the user.",
}


def build_catalog(tools: Iterable[Tool], *, is_enabled: bool = True) -> Mapping[str, dict[str, Any]]:
    """Return the result of each list request. If Reverie is turned off, there are no resources."""
    return {
        "tools/list": {"tools": [describe_tool(tool) for tool in tools]},
        "prompts/list": {"prompts": [REVIEW]},
        "resources/list": {"resources": [BRIEF] if is_enabled else []},
        "resources/templates/list": {"resourceTemplates": [MEMORY] if is_enabled else []},
    }
