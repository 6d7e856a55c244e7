"""The relay of a session over stdio: answer what needs no server, and pass every other request to `POST /mcp`."""

import json
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from config.toml_files import SettingsError
from pipeline.errors import ReverieError, ServerUnreachable
from web.contract import SESSION_HEADER
from web.mcp.greeting import LISTS, Request, sign
from web.mcp.messages import INTERNAL_ERROR, read_message
from web.mcp.session import Session

if TYPE_CHECKING:
    from web.mcp.connection import Connection
    from web.mcp.tool import Server, ToolCall, ToolResult

# How long requests may take after the host has closed standard input.
LAST_ANSWERS_S = 10.0
# The server has as many threads for all its clients. Further requests wait in the relay.
MOST_AT_ONCE = 8
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
PING: dict[str, Any] = {"method": "ping"}

log = logging.getLogger(__name__)


class Host(Protocol):
    """The lines of a host, and a way to send it messages."""

    def __iter__(self) -> Iterator[bytes]:
        """Yield each line."""

    def send(self, message: Any) -> None:
        """Send a message."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The folder of a session, and the session of the agent if the host names it."""

    folder: str = ""
    session: str | None = None


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

    def __init__(
        self, host: Host, session: Session, connect: "Callable[[], Connection]", origin: Origin | None = None
    ) -> None:
        self._host = host
        self._session = session
        self._connect = connect
        self._origin = origin or Origin()
        self._connection: Connection | None = None
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
        if self._connection is not None:
            self._connection.close()

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
            traceback.print_exc(file=sys.stderr)
            reason = f"{request.method} failed unexpectedly ({type(error).__name__}). See the log of the MCP server."
            return request.refuse(INTERNAL_ERROR, reason)

    def _warm_up(self) -> None:
        """Once, start the stack if it is down, and have the server load its SDK: a tool call will follow."""
        if not self._is_warm:
            self._is_warm = True
            threading.Thread(target=self._ping, name="start", daemon=True).start()

    def _ping(self) -> None:
        try:
            self._post(self._find_connection(), PING, {}, stores=False, may_repeat=True)
        except (ReverieError, SettingsError, OSError) as error:
            # The first tool call reports the same error to the model.
            log.warning("%s", error)

    def _answer(self, request: Request, mark: object) -> None:
        try:
            with self._slots:
                if not self._open.is_open(mark):
                    return
                answer = self._guard(request, lambda: self._ask(request)) or {}
            if self._open.is_open(mark):
                self._host.send(answer)
            if request.method == "tools/call":
                self._announce(request, answer)
        finally:
            self._open.finish(mark)

    def _announce(self, request: Request, answer: Mapping[str, Any]) -> None:
        """Notify the host of a changed list: a tool may reveal others, and a switch may have changed since."""
        is_done = "result" in answer and not answer["result"].get("isError")
        name = request.params.get("name") if is_done else None
        for notification in self._session.note_call(name):
            self._host.send(notification)

    def _ask(self, request: Request) -> dict[str, Any]:
        """Return the server's answer, or the reason why there is none. The model gets it if it called a tool."""
        is_call = request.method == "tools/call"
        try:
            connection = self._find_connection()
            return self._call_tool(connection, request) if is_call else self._relay(connection, request)
        except (ReverieError, SettingsError, OSError) as error:
            if is_call:
                return _answer_text(request, str(error), {}, is_error=True)
            return request.refuse(INTERNAL_ERROR, str(error))

    def _find_connection(self) -> "Connection":
        with self._connecting:
            if self._connection is None:
                self._connection = self._connect()
            return self._connection

    def _relay(
        self, connection: "Connection", request: Request, *, stores: bool = False, may_repeat: bool = True
    ) -> dict[str, Any]:
        message = {"method": request.method, "params": request.params}
        headers = self._session.describe(request)
        return self._post(connection, message, headers, stores=stores, may_repeat=may_repeat) | {"id": request.id}

    def _post(
        self,
        connection: "Connection",
        message: Mapping[str, Any],
        headers: Mapping[str, str],
        *,
        stores: bool,
        may_repeat: bool,
    ) -> dict[str, Any]:
        named = {} if self._origin.session is None else {SESSION_HEADER: quote(self._origin.session, safe="")}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode("ascii")
        target = f"/mcp?profile={self._session.profile}"
        return connection.post(target, body, {**ACCEPT, **named, **headers}, stores=stores, may_repeat=may_repeat)

    def _call_tool(self, connection: "Connection", request: Request) -> dict[str, Any]:
        from web.mcp.relayed_calls import RelayedCall

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

    def _describe_call(self, connection: "Server", request: Request, arguments: Mapping[str, Any]) -> "ToolCall":
        from web.mcp.rendering import ShownIds
        from web.mcp.tool import ToolCall, find_thread

        session = find_thread(request.params.get("_meta")) or self._origin.session
        agent = self._session.find_client(request) or None
        return ToolCall(connection, ShownIds(), agent, self._origin.folder, arguments, session)


def _answer_call(request: Request, result: "ToolResult") -> dict[str, Any]:
    """Return the answer to a call that this process has carried out."""
    return _answer_text(request, result.text, result.meta or {}, is_error=False)


def _answer_text(request: Request, text: str, meta: Mapping[str, Any], *, is_error: bool) -> dict[str, Any]:
    """Return the answer to a call, in the form of the request's version. A model reads the text, also of an error."""
    answer: dict[str, Any] = {} if request.envelope is None else sign()
    answer |= {"content": [{"type": "text", "text": text}], "isError": is_error}
    metadata = answer.get("_meta", {}) | meta
    return request.answer(answer | ({"_meta": metadata} if metadata else {}))
