"""Calls of tools through the relay: which may be repeated, which run in this process, and which wait in the spool."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn, cast

from pipeline.kernel.errors import AnswerLost, InvalidField, ServerUnreachable
from web.hooks.spool.writes import BATCH, add_client_ids, has_client_ids
from web.mcp.connection import Connection
from web.mcp.tool import Effect, Tool, ToolCall, ToolResult, call_recorded, call_tool, validate_arguments


class RelayedCall:
    """A call of one tool. Its memories get ids, by which the server recognizes a repeated request."""

    def __init__(self, tool: Tool, call: ToolCall) -> None:
        self._tool = tool
        self._call = replace(call, arguments=_identify_items(tool, call.arguments))

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments to send."""
        return dict(self._call.arguments)

    @property
    def stores(self) -> bool:
        """Return whether the call stores a new memory of the project."""
        return self._tool.stores(self._call.arguments)

    @property
    def may_repeat(self) -> bool:
        """Return whether the call may be sent again although its first answer was lost."""
        tool, arguments = self._tool, self._call.arguments
        only_reads = tool.effect is Effect.READS or (
            tool.reading is not None and set(arguments) <= set(tool.reading.names)
        )
        return only_reads or self._has_ids

    @property
    def _has_ids(self) -> bool:
        return self._tool.name == "remember_batch" and has_client_ids("POST", BATCH, self._call.arguments)

    def run_here(self, connection: Connection) -> ToolResult:
        """Run a tool that reads files of the folder, with requests to the HTTP API."""
        return call_recorded(self._tool, replace(self._call, server=connection))

    def spool(self, connection: Connection, error: ServerUnreachable) -> ToolResult:
        """Let the request of the tool wait in the spool; raise the error if it cannot."""
        if isinstance(error, AnswerLost) and not self._has_ids:
            # The server may have carried it out.
            raise error
        return call_tool(self._tool, replace(self._call, server=_Spool(connection, error)))


class _Spool:
    """The server of a tool while no server answers: it spools what can wait, and refuses all else."""

    def __init__(self, connection: Connection, error: ServerUnreachable) -> None:
        self._connection = connection
        self._error = error

    def call(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> NoReturn:
        """Raise Spooled for a request that waits now, else the reason why no server answers."""
        del query
        spooled = self._connection.spool(method, path, add_client_ids(method, path, body))
        raise (spooled or self._error) from self._error


def _identify_items(tool: Tool, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call with an id for each memory, unchanged if the server will refuse them."""
    if tool.name != "remember_batch":
        return arguments
    try:
        valid = validate_arguments(tool, arguments)
    except InvalidField:
        return arguments
    if not all(isinstance(item, dict) for item in valid["items"]):
        return arguments
    return cast(Mapping[str, Any], add_client_ids("POST", BATCH, valid))
