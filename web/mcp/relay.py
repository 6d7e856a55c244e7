"""The relay of a session over stdio: answer what needs no server, and pass every other request to it.

Nothing is imported here that the answer to the handshake does not need.
"""

import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

from config.toml_files import SettingsError
from pipeline.kernel.errors import AnswerLost, InvalidField, ReverieError, ServerUnreachable
from web.hooks.spool.writes import BATCH, add_client_ids, has_client_ids
from web.mcp.connection import Connection
from web.mcp.greeting import LISTS, Request, sign
from web.mcp.messages import INTERNAL_ERROR, read_message
from web.mcp.rendering import ShownIds
from web.mcp.session import Session
from web.mcp.tool import Effect, Tool, ToolCall, ToolResult, call_recorded, call_tool, find_thread, validate_arguments

if TYPE_CHECKING:
    from web.mcp.connection import Connection

# How long requests may take after the host has closed standard input.
LAST_ANSWERS_S = 10.0
# The server has as many threads for all its clients. Further requests wait in the relay.
MOST_AT_ONCE = 8


CHUNK = 1 << 16


class HostLines:
    """Reads lines from one descriptor and writes messages to another. Several threads may send."""

    def __init__(self, source: int, target: int) -> None:
        self._source = source
        self._target = target
        self._lock = threading.Lock()

    @classmethod
    def take_standard_streams(cls) -> Self:
        """Take both streams from this process: nothing else reads lines of the host or writes between messages."""
        source, target = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        os.close(nothing)
        return cls(source, target)

    def __iter__(self) -> Iterator[bytes]:
        """Yield each line as soon as it is complete; the last one may lack its end."""
        read = b""
        while chunk := os.read(self._source, CHUNK):
            *lines, read = (read + chunk).split(b"\n")
            yield from lines
        yield read

    def send(self, message: Any) -> None:
        """Write a message as one line; do nothing if the host has closed its end."""
        # In ASCII: a text of the host may contain characters that cannot be encoded.
        line = json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"
        with self._lock, suppress(BrokenPipeError):
            while line:
                line = line[os.write(self._target, line) :]


class OpenRequests:
    """The requests of a host that still need an answer."""

    def __init__(self) -> None:
        self._ids: dict[object, str | int] = {}
        self._changed = threading.Condition()

    def add(self, request_id: str | int) -> object:
        """Add a request and return a mark of it: a host may use an id again."""
        mark = object()
        with self._changed:
            self._ids[mark] = request_id
        return mark

    def cancel(self, request_id: Any) -> None:
        """Remove the requests with an id: their host does not want an answer any more."""
        with self._changed:
            self._ids = {mark: other for mark, other in self._ids.items() if other != request_id}
            self._changed.notify_all()

    def is_open(self, mark: object) -> bool:
        """Return whether a request still needs an answer."""
        return mark in self._ids

    def finish(self, mark: object) -> None:
        """Remove a request that has its answer."""
        with self._changed:
            self._ids.pop(mark, None)
            self._changed.notify_all()

    def wait(self, timeout_s: float) -> None:
        """Wait until no request needs an answer, at most until the timeout."""
        with self._changed:
            self._changed.wait_for(lambda: not self._ids, timeout_s)


class Relay:
    """Serves one host. Each request that needs the server has a thread, so that none waits for another."""

    def __init__(self, host: HostLines, session: Session, connect: "Callable[[], Connection]") -> None:
        self._host = host
        self._session = session
        self._connect = connect
        self._requests: ServerRequests | None = None
        self._connecting = threading.Lock()
        self._is_warm = False
        self._open = OpenRequests()
        self._slots = threading.BoundedSemaphore(MOST_AT_ONCE)

    def run(self, last_answers_s: float = LAST_ANSWERS_S) -> None:
        """Serve the host until it closes standard input."""
        for line in self._host:
            if line.strip():
                self._hear(line)
        self._open.wait(last_answers_s)
        if self._requests is not None:
            self._requests.close()

    def _hear(self, line: bytes) -> None:
        text = read_message(line)
        if not isinstance(text, str):
            for refusal in text:
                self._host.send(refusal.render())
            return
        message = json.loads(text)
        if "method" not in message:
            # An answer, although the server asks nothing.
            return
        method, params = message["method"], message.get("params") or {}
        if "id" in message:
            self._take(Request(method, message["id"], params))
        elif method == "notifications/cancelled":
            self._open.cancel(params.get("requestId"))
            self._session.close_stream(params.get("requestId"))

    def _take(self, request: Request) -> None:
        """Answer a request now, or in a thread if the server has to answer it."""
        answer = self._guard(request, lambda: self._find_answer(request))
        if answer is not None:
            self._host.send(answer)
            if request.method in LISTS:
                self._warm_up()

    def _find_answer(self, request: Request) -> dict[str, Any] | None:
        """Return the answer to a request, None after a thread was started that will send it."""
        answer = self._session.answer(request)
        if answer is not None:
            return answer
        mark = self._open.add(request.id)
        try:
            threading.Thread(target=self._answer, args=(request, mark), name="mcp", daemon=True).start()
        except RuntimeError:
            self._open.finish(mark)
            raise
        return None

    def _guard(self, request: Request, find: Callable[[], dict[str, Any] | None]) -> dict[str, Any] | None:
        """Return the answer to a request, also if an unexpected error occurs: the session must go on."""
        try:
            return find()
        except Exception as error:  # noqa: BLE001 - the host gets an answer, and the traceback is on standard error
            import traceback

            traceback.print_exc(file=sys.stderr)
            reason = f"{request.method} failed unexpectedly ({type(error).__name__}). See the log of the MCP server."
            return request.refuse(INTERNAL_ERROR, reason)

    def _warm_up(self) -> None:
        """Once, start the stack if it is down, and have the server load its SDK: a tool call will follow."""
        if not self._is_warm:
            self._is_warm = True
            threading.Thread(target=lambda: self._find_requests().ping(), name="start", daemon=True).start()

    def _find_requests(self) -> "ServerRequests":
        with self._connecting:
            if self._requests is None:
                self._requests = ServerRequests(self._session, self._connect)
            return self._requests

    def _answer(self, request: Request, mark: object) -> None:
        try:
            with self._slots:
                if not self._open.is_open(mark):
                    return
                answer = self._guard(request, lambda: self._find_requests().answer(request)) or {}
            if self._open.is_open(mark):
                self._host.send(answer)
            if request.method == "tools/call":
                self._announce(request, answer)
        finally:
            self._open.finish(mark)

    def _announce(self, request: Request, answer: dict[str, Any]) -> None:
        """Notify the host of a changed list: a tool may reveal others, and a switch may have changed since."""
        is_done = "result" in answer and not answer["result"].get("isError")
        name = request.params.get("name") if is_done else None
        for notification in self._session.note_call(name):
            self._host.send(notification)


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
