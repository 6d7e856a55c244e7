"""MCP on the web server: streamable HTTP by the SDK. Requests are independent and are answered in JSON.

The SDK is asynchronous and the web server uses threads: a separate thread runs the event loop of the SDK, and tools
run in worker threads. Everything is imported at the first request.
"""

import asyncio
import logging
import threading
from collections.abc import Iterable
from typing import Any, cast

import anyio.to_thread
from a2wsgi import ASGIMiddleware
from flask import Flask
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from werkzeug.routing import MapAdapter

from config.paths import READ_ONLY_HEADER
from pipeline.errors import ReverieError
from web.mcp.full_tools import PROFILES, REVEALED
from web.mcp.http_sessions import Subscriber
from web.mcp.in_process import InProcessServer, Sender
from web.mcp.offered_tools import Switches
from web.mcp.server import ToolCaller, build_server

# The key in the WSGI environment under which the route stores the Sender.
SENDER = "reverie.sender"
# The key under which it stores the Subscriber.
SUBSCRIBER = "reverie.subscriber"

# The SDK logs a line per request.
logging.getLogger("mcp").setLevel(logging.WARNING)


class SessionSubscriptions:
    """Records what the sessions of requests subscribe to. They get their notifications on a separate stream."""

    async def subscribe(self, context: Any, uri: str) -> None:
        """Add a resource to the session of a request; raise NotFound without one."""
        subscriber = _find_subscriber(context)
        session = subscriber.require_session()
        await anyio.to_thread.run_sync(lambda: session.subscribe(uri, subscriber.find_end))

    async def unsubscribe(self, context: Any, uri: str) -> None:
        """Remove a resource from the session of a request; raise NotFound without one."""
        _find_subscriber(context).require_session().unsubscribe(uri)


def _find_subscriber(context: Any) -> Subscriber:
    subscriber: Subscriber = context.request.scope["wsgi_environ"][SUBSCRIBER]
    return subscriber


class FrontServer:
    """Serves the tools of one profile to the callers that the app has accepted."""

    def __init__(self, app: Flask, operations: MapAdapter, profile: str) -> None:
        self._app = app
        self._operations = operations
        self._manager = StreamableHTTPSessionManager(
            build_server(
                self._find_caller,
                PROFILES[profile],
                SessionSubscriptions(),
                self._find_switches,
                REVEALED if profile == "core" else (),
            ),
            json_response=True,
            stateless=True,
            # The app has already checked Host and Origin.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=app.config["MAX_CONTENT_LENGTH"],
        )
        self._loop = asyncio.new_event_loop()
        self._runs = threading.Event()
        threading.Thread(target=self._loop.run_until_complete, args=(self._run(),), name="mcp", daemon=True).start()
        self._runs.wait()
        self._answer = ASGIMiddleware(cast(Any, self._manager.handle_request), loop=self._loop)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer one request."""
        answer: Iterable[bytes] = self._answer(cast(Any, environ), start_response)
        return answer

    async def _run(self) -> None:
        async with self._manager.run():
            self._runs.set()
            # Wait until the process ends.
            await asyncio.Event().wait()

    def _find_caller(self, request: Any) -> ToolCaller:
        sender = _find_sender(request)
        return ToolCaller(self._open(sender), sender.folder, sender.session)

    def _open(self, sender: Sender) -> InProcessServer:
        return InProcessServer(self._app, self._operations, sender)

    def _find_switches(self, request: Any) -> Switches:
        sender = _find_sender(request)
        try:
            answer = self._open(sender).call("GET", "/v1/switches")
        except ReverieError:
            # A tool call reports why the workspace cannot be used.
            return Switches()
        may_write = answer["write_tools"] and not answer["read_only"]
        return Switches(answer["enabled"], may_write, is_read_only_session=READ_ONLY_HEADER in sender.headers)


def _find_sender(request: Any) -> Sender:
    sender: Sender = request.scope["wsgi_environ"][SENDER]
    return sender
