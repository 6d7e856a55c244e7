"""MCP over standard input and output, and over streamable HTTP on loopback for holders of the bearer token."""

import hmac
import json
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from types import FrameType, TracebackType
from typing import Any, Self

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

from pipeline.errors import ReverieError
from web.mcp.opening import OpeningLine

HOST = "127.0.0.1"
PATH = "/mcp"
MAX_BODY_BYTES = 8 * 1024 * 1024
# Streams that hosts keep open for notifications would hold up a stop for ever.
GRACE_S = 2

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def serve_stdio(server: Server[Any], opening: Sequence[OpeningLine]) -> None:
    """Serve one host, that began with these lines, until it closes standard input."""
    anyio.run(_serve, server, opening)


async def _serve(server: Server[Any], opening: Sequence[OpeningLine]) -> None:
    async with stdio_server() as (read, write):
        await server.run(
            Replaying(map(parse_line, opening), read),
            Omitting(answered_ids(opening), write),
            server.create_initialization_options(),
        )


def parse_line(said: OpeningLine) -> SessionMessage | Exception:
    """Return a line as the SDK's stream gives it."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(said.line, by_name=False))
    except ValueError as error:
        # The SDK answers what it could not read.
        return error


def answered_ids(opening: Sequence[OpeningLine]) -> list[str | int]:
    """Return the ids of the requests that have their answer."""
    return [json.loads(said.line)["id"] for said in opening if said.answered]


class _Wrapped:
    """A stream that closes the one that it stands before."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Replaying(_Wrapped):
    """A stream of messages that begins with those that were read before."""

    def __init__(self, before: Iterable[SessionMessage | Exception], rest: Any) -> None:
        super().__init__(rest)
        self._before = iter(before)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        for one in self._before:
            return one
        received: SessionMessage | Exception = await self._inner.receive()
        return received

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class Omitting(_Wrapped):
    """A stream of messages that leaves out the answers to some requests, each once."""

    def __init__(self, request_ids: Iterable[str | int], rest: Any) -> None:
        super().__init__(rest)
        self._omitted = list(request_ids)

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message, unless it is an answer that was given already."""
        message = item.message
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id in self._omitted:
            self._omitted.remove(message.id)
            return
        await self._inner.send(item)


class PortTaken(ReverieError):
    """Say that the port is another program's."""


def listen(port: int) -> socket.socket:
    """Return a socket that listens on loopback, on a free port for 0; raise PortTaken when it cannot."""
    place = socket.socket()
    # A port whose last connections are still being forgotten is free.
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        place.bind((HOST, port))
        place.listen()
    except OSError as error:
        place.close()
        raise PortTaken(f"cannot listen on {HOST}:{port}: {error.strerror}") from error
    return place


def serve_http(server: Server[Any], token: Callable[[], str], place: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT."""
    # Loaded by who serves HTTP only.
    import uvicorn

    # The app checks Host and Origin by itself where it is told that it listens on loopback.
    app = require_token(
        server.streamable_http_app(streamable_http_path=PATH, host=HOST, max_request_body_size=MAX_BODY_BYTES), token
    )
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=GRACE_S, server_header=False)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        sys.exit(0)

    # The server raises the signal again once it has stopped.
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    uvicorn.Server(config).run(sockets=[place])


def require_token(app: App, token: Callable[[], str]) -> App:
    """Return an app that answers 401 to whoever does not send the token."""

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"authorization", b"")
        expected = token()
        if expected and hmac.compare_digest(given, f"Bearer {expected}".encode()):
            await app(scope, receive, send)
            return
        headers = [(b"content-type", b"application/problem+json"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": _REFUSAL})

    return guard


_REFUSAL = (
    b'{"type": "urn:reverie:problem:unauthorized", "title": "Unauthorized", "status": 401, '
    b'"detail": "a bearer token is needed; it stands in the file `token` of the Reverie home", "errors": []}'
)
