"""MCP over standard input and output."""

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self, cast

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

from web.mcp.messages import INVALID_REQUEST, Refusal, read_message
from web.mcp.opening import OpeningLine


def serve_stdio(server: Server[Any], opening: Sequence[OpeningLine]) -> None:
    """Serve one host, whose first lines were already read, until it closes standard input."""
    anyio.run(_serve, server, opening)


async def _serve(server: Server[Any], opening: Sequence[OpeningLine]) -> None:
    lines = HostLines((opening_line.line.encode() for opening_line in opening), _take_input())
    # The SDK drops lines that it cannot read, and the host would wait for an answer.
    async with stdio_server(stdin=cast(Any, lines)) as (read, write):
        lines.refuse_by(write.send)
        await server.run(read, Omitting(answered_ids(opening), write), server.create_initialization_options())


def _take_input() -> AsyncIterator[bytes]:
    """Return the lines of standard input. Programs that a tool starts get an empty standard input."""
    wire = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return aiter(anyio.wrap_file(os.fdopen(wire, "rb")))


class HostLines:
    """The lines of a host that the SDK can read. Every other line is answered with an error."""

    def __init__(self, opening: Iterable[bytes], rest: AsyncIterator[bytes]) -> None:
        self._opening = iter(opening)
        self._rest = rest
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
                line = await anext(self._rest)
            if not line.strip():
                continue
            message = read_line(line)
            if isinstance(message, str):
                return message
            for refusal in message:
                await self._refuse(refusal)

    async def _refuse(self, refusal: Refusal) -> None:
        await self._can_send.wait()
        if self._send is not None:
            error = ErrorData(code=refusal.code, message=refusal.message)
            await self._send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=refusal.id, error=error)))


def read_line(line: bytes) -> str | list[Refusal]:
    """Return a line in a form that the SDK can read, else the errors to answer it with."""
    message = read_message(line)
    if isinstance(message, str):
        try:
            jsonrpc_message_adapter.validate_json(message, by_name=False)
        except ValueError:
            # Neither a request nor a valid answer.
            return [Refusal(None, INVALID_REQUEST, "The message is neither a request nor an answer.")]
    return message


def answered_ids(opening: Sequence[OpeningLine]) -> list[str | int]:
    """Return the ids of the requests that were already answered."""
    return [json.loads(opening_line.line)["id"] for opening_line in opening if opening_line.answered]


class Omitting:
    """A stream of messages that drops the answer to each of some requests once."""

    def __init__(self, request_ids: Iterable[str | int], rest: Any) -> None:
        self._omitted = list(request_ids)
        self._inner = rest

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
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id in self._omitted:
            self._omitted.remove(message.id)
            return
        await self._inner.send(item)
