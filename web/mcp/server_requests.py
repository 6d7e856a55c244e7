"""The requests of a session over stdio that the server answers at `POST /mcp`, or that wait in the spool."""

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn, cast

from config.toml_files import SettingsError
from pipeline.kernel.errors import AnswerLost, InvalidField, ReverieError, ServerUnreachable
from web.hooks.spool.writes import BATCH, add_client_ids, has_client_ids
from web.mcp.connection import Connection
from web.mcp.greeting import Request, sign
from web.mcp.messages import INTERNAL_ERROR
from web.mcp.rendering import ShownIds
from web.mcp.session import Session
from web.mcp.tool import Effect, Tool, ToolCall, ToolResult, call_recorded, call_tool, find_thread, validate_arguments

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
PING: dict[str, Any] = {"method": "ping"}

log = logging.getLogger(__name__)


class ServerRequests:
    """Sends requests over a connection that is opened for the first one. Several threads may use one object."""

    def __init__(self, session: Session, connect: Callable[[], Connection]) -> None:
        self._session = session
        self._connect = connect
        self._connection: Connection | None = None
        self._connecting = threading.Lock()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def ping(self) -> None:
        """Ask the server whether it answers."""
        try:
            self._post(self._find_connection(), PING, {}, stores=False, may_repeat=True)
        except (ReverieError, SettingsError, OSError) as error:
            # The first tool call reports the same error to the model.
            log.warning("%s", error)

    def answer(self, request: Request) -> dict[str, Any]:
        """Return the server's answer, or the reason why there is none. The model gets it if it called a tool."""
        is_call = request.method == "tools/call"
        try:
            connection = self._find_connection()
            return self._call_tool(connection, request) if is_call else self._relay(connection, request)
        except (ReverieError, SettingsError, OSError) as error:
            if is_call:
                return _answer_text(request, str(error), {}, is_error=True)
            return request.refuse(INTERNAL_ERROR, str(error))

    def _find_connection(self) -> Connection:
        with self._connecting:
            if self._connection is None:
                self._connection = self._connect()
            return self._connection

    def _relay(
        self, connection: Connection, request: Request, *, stores: bool = False, may_repeat: bool = True
    ) -> dict[str, Any]:
        message = {"method": request.method, "params": request.params}
        headers = self._session.describe(request)
        return self._post(connection, message, headers, stores=stores, may_repeat=may_repeat) | {"id": request.id}

    def _post(
        self,
        connection: Connection,
        message: Mapping[str, Any],
        headers: Mapping[str, str],
        *,
        stores: bool,
        may_repeat: bool,
    ) -> dict[str, Any]:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode("ascii")
        target = f"/mcp?profile={self._session.profile}"
        return connection.post(target, body, {**ACCEPT, **headers}, stores=stores, may_repeat=may_repeat)

    def _call_tool(self, connection: Connection, request: Request) -> dict[str, Any]:
        tool, arguments = self._session.find_tool(request.params.get("name")), request.params.get("arguments") or {}
        if tool is None or not isinstance(arguments, dict):
            return self._relay(connection, request, may_repeat=False)
        call = RelayedCall(tool, self._describe_call(connection, request, arguments))
        if tool.reads_folder:
            return _answer_call(request, call.run_here(connection))
        relayed = request._replace(params=request.params | {"arguments": call.arguments})
        try:
            return self._relay(connection, relayed, stores=call.stores, may_repeat=call.may_repeat)
        except ServerUnreachable as error:
            return _answer_call(request, call.spool(connection, error))

    def _describe_call(self, connection: Connection, request: Request, arguments: Mapping[str, Any]) -> ToolCall:
        session = find_thread(request.params.get("_meta")) or connection.session
        agent = self._session.find_client(request) or None
        return ToolCall(connection, ShownIds(), agent, connection.folder, arguments, session)


def _answer_call(request: Request, result: ToolResult) -> dict[str, Any]:
    """Return the answer to a call that this process has carried out."""
    return _answer_text(request, result.text, result.meta or {}, is_error=False)


def _answer_text(request: Request, text: str, meta: Mapping[str, Any], *, is_error: bool) -> dict[str, Any]:
    """Return the answer to a call, in the form of the request's version. A model reads the text, also of an error."""
    answer: dict[str, Any] = {} if request.envelope is None else sign()
    answer |= {"content": [{"type": "text", "text": text}], "isError": is_error}
    metadata = answer.get("_meta", {}) | meta
    return request.answer(answer | ({"_meta": metadata} if metadata else {}))


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
