"""The relay of a session over stdio: answer what needs no server, and pass every other request to it.

Nothing is imported here that the answer to the handshake does not need.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from web.mcp.greeting import LISTS, Request
from web.mcp.messages import INTERNAL_ERROR, read_message
from web.mcp.session import Session

if TYPE_CHECKING:
    from web.mcp.connection import Connection
    from web.mcp.server_requests import ServerRequests

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
                from web.mcp.server_requests import ServerRequests

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
