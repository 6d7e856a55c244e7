"""The tools that a session is offered: those of its profile, without those that its switches turn off."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pipeline.errors import READ_ONLY_SESSION, InvalidField
from web.mcp.tool import Tool, ToolCall, ToolFailed, ToolResult, find_tool

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


# Returns the switches of a request; over stdio there is no request.
FindSwitches = Callable[[Any], Switches]


def _explain_off(_call: ToolCall) -> ToolResult:
    return ToolResult(IS_OFF)


# A host shows an empty list as a broken server, so one tool explains why there are no others.
MEMORY_IS_OFF = Tool("memory_is_off", IS_OFF, _explain_off)


def _explain_more(_call: ToolCall) -> ToolResult:
    raise AssertionError("the server answers this tool, because it knows the session")


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


class SessionTools:
    """The tools of a profile for one session over stdio, or for independent requests over HTTP."""

    def __init__(self, tools: tuple[Tool, ...], more: tuple[Tool, ...], find_switches: FindSwitches) -> None:
        self._tools = tools
        self._more = more
        self._find_switches = find_switches
        self._is_revealed = False
        self._listed: tuple[Tool, ...] | None = None
        self._had_resources: bool | None = None

    @property
    def names(self) -> frozenset[str]:
        """Return the names of the tools of the profile."""
        return frozenset(tool.name for tool in self._tools)

    def list_offered(self, request: Any) -> tuple[Tool, ...]:
        """Return the tools to list now."""
        offered = offer_tools(
            (*self._tools, *self._more) if self._is_revealed else self._tools, self._find_switches(request)
        )
        self._listed = offered
        return offered

    def is_enabled(self, request: Any) -> bool:
        """Return whether Reverie is on. If it is off, there are no resources."""
        return self._find_switches(request).is_enabled

    def lists_resources(self, request: Any) -> bool:
        """Return whether to list resources now."""
        self._had_resources = self.is_enabled(request)
        return self._had_resources

    def find(self, name: str, request: Any) -> Tool:
        """Return a tool to run; raise ToolFailed if a switch turns it off, InvalidField for an unknown name."""
        switches = self._find_switches(request)
        known = (*self._tools, *self._more)
        offered = offer_tools(known, switches)
        if name == MORE_TOOLS.name and MORE_TOOLS in offered:
            return self._reveal(offer_tools(self._more, switches), is_session=request is None)
        try:
            return find_tool(offered, name)
        except InvalidField:
            if any(tool.name == name for tool in known):
                raise ToolFailed(explain_missing(switches)) from None
            raise

    def find_changed_lists(self) -> ChangedLists:
        """Return which lists of a session differ from those that were sent last; each change is reported once."""
        tools, had_resources = self._listed, self._had_resources
        return ChangedLists(
            self.list_offered(None) != tools and tools is not None,
            self.lists_resources(None) != had_resources and had_resources is not None,
        )

    def _reveal(self, tools: tuple[Tool, ...], *, is_session: bool) -> Tool:
        def run(_call: ToolCall) -> ToolResult:
            self._is_revealed = self._is_revealed or is_session
            return describe_revealed(tools)

        if is_session and self._listed is None:
            # The first list was answered before the SDK was loaded.
            self.list_offered(None)
        return replace(MORE_TOOLS, run=run)
