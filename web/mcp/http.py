"""MCP over streamable HTTP, on loopback, for holders of the bearer token."""

import hmac
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from types import FrameType
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server

from pipeline.errors import ReverieError

HOST = "127.0.0.1"
PATH = "/mcp"
MAX_BODY_BYTES = 8 * 1024 * 1024
# Streams that hosts keep open for notifications would hold up a stop for ever.
GRACE_S = 2

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class PortTaken(ReverieError):
    """Say that the port is another program's."""


def listening(port: int) -> socket.socket:
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
    # The app checks Host and Origin by itself where it is told that it listens on loopback.
    app = guarded(
        server.streamable_http_app(streamable_http_path=PATH, host=HOST, max_request_body_size=MAX_BODY_BYTES), token
    )
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=GRACE_S, server_header=False)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        sys.exit(0)

    # The server raises the signal again once it has stopped.
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    uvicorn.Server(config).run(sockets=[place])


def guarded(app: App, token: Callable[[], str]) -> App:
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
