"""MCP over standard input and output."""

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self, cast

import anyio
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from web.mcp.greeting import ACKNOWLEDGED, SUBSCRIPTION_ID
from web.mcp.messages import INVALID_REQUEST, Refusal, read_message
from web.mcp.opening import OpeningLine

# How long requests may take after the host has closed standard input.
LAST_ANSWERS_S = 10.0


def serve_stdio(server: Server[Any], opening: Sequence[OpeningLine]) -> None:
    """Serve one host, whose first lines were already read, until it closes standard input."""
    anyio.run(_serve, server, opening)


def options_of(server: Server[Any]) -> InitializationOptions:
    """Return the options of a session over stdio, which is notified when its tools change."""
    return server.create_initialization_options(NotificationOptions(tools_changed=True))


async def _serve(server: Server[Any], opening: Sequence[OpeningLine]) -> None:
    unanswered = UnansweredRequests()
    lines = HostLines((opening_line.line.encode() for opening_line in opening), _take_input(), unanswered)
    # The SDK drops lines that it cannot read, and the host would wait for an answer.
    async with stdio_server(stdin=cast(Any, lines)) as (read, write):
        lines.refuse_by(write.send)
        answers = Omitting(answered_ids(opening), write, unanswered)
        await server.run(read, answers, options_of(server))


def _take_input() -> AsyncIterator[bytes]:
    """Return the lines of standard input. Programs that a tool starts get an empty standard input."""
    wire = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return aiter(anyio.wrap_file(os.fdopen(wire, "rb")))


class UnansweredRequests:
    """The requests of a host that have no answer yet."""

    def __init__(self) -> None:
        self._ids: set[str | int] = set()
        self._changed = anyio.Event()

    def follow(self, message: JSONRPCMessage) -> None:
        """Add a request that the host sent, or remove one that it cancelled."""
        if isinstance(message, JSONRPCRequest):
            self._ids.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self.remove((message.params or {}).get("requestId"))

    def remove(self, request_id: str | int | None) -> None:
        """Remove a request that no longer needs an answer."""
        self._ids = {waiting for waiting in self._ids if waiting != request_id}
        self._changed.set()

    async def wait(self, timeout_s: float = LAST_ANSWERS_S) -> None:
        """Wait until every request has its answer, at most until the timeout."""
        with anyio.move_on_after(timeout_s):
            while self._ids:
                self._changed = anyio.Event()
                await self._changed.wait()


class HostLines:
    """The lines of a host that the SDK can read. Every other line is answered with an error."""

    def __init__(self, opening: Iterable[bytes], rest: AsyncIterator[bytes], unanswered: UnansweredRequests) -> None:
        self._opening = iter(opening)
        self._rest = rest
        self._unanswered = unanswered
        self._send: Callable[[SessionMessage], Awaitable[None]] | None = None
        self._can_send = anyio.Event()

    def refuse_by(self, send: Callable[[SessionMessage], Awaitable[None]]) -> None:
        """Set the function that sends the answer to a line that the SDK cannot read."""
        self._send = send
        self._can_send.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        """Return the next line that the SDK can read."""
        while True:
            line = next(self._opening, None)
            if line is None:
                line = await anext(self._rest, None)
            if line is None:
                # The SDK cancels unanswered requests when its input ends.
                await self._unanswered.wait()
                raise StopAsyncIteration
            if not line.strip():
                continue
            message = read_line(line)
            if isinstance(message, HostMessage):
                self._unanswered.follow(message.message)
                return message.line
            for refusal in message:
                await self._refuse(refusal)

    async def _refuse(self, refusal: Refusal) -> None:
        await self._can_send.wait()
        if self._send is not None:
            error = ErrorData(code=refusal.code, message=refusal.message)
            await self._send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=refusal.id, error=error)))


class HostMessage(NamedTuple):
    """A message of a host, as the line that the SDK reads and as the parsed message."""

    line: str
    message: JSONRPCMessage


def read_line(line: bytes) -> HostMessage | list[Refusal]:
    """Return a line in a form that the SDK can read, else the errors to answer it with."""
    message = read_message(line)
    if not isinstance(message, str):
        return message
    try:
        return HostMessage(message, jsonrpc_message_adapter.validate_json(message, by_name=False))
    except ValueError:
        # Neither a request nor a valid answer.
        return [Refusal(None, INVALID_REQUEST, "The message is neither a request nor an answer.")]


def answered_ids(opening: Sequence[OpeningLine]) -> list[str | int]:
    """Return the ids of the requests that were already answered."""
    return [json.loads(opening_line.line)["id"] for opening_line in opening if opening_line.answered]


class Omitting:
    """A stream of messages that drops the answer to each of some requests once."""

    def __init__(self, request_ids: Iterable[str | int], rest: Any, unanswered: UnansweredRequests) -> None:
        self._omitted = list(request_ids)
        self._inner = rest
        self._unanswered = unanswered

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message, unless it answers a request that was already answered."""
        message = item.message
        if isinstance(message, JSONRPCNotification) and message.method == ACKNOWLEDGED:
            # A stream has its acknowledgement instead of an answer.
            subscription = (message.params or {}).get("_meta", {}).get(SUBSCRIPTION_ID)
            if subscription not in self._omitted:
                await self._inner.send(item)
            else:
                self._omitted.remove(subscription)
        elif not isinstance(message, JSONRPCResponse | JSONRPCError):
            await self._inner.send(item)
        elif message.id in self._omitted:
            self._omitted.remove(message.id)
            self._unanswered.remove(message.id)
        else:
            await self._inner.send(item)
            self._unanswered.remove(message.id)
