"""MCP over standard input and output."""

import json
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

from web.mcp.opening import OpeningLine


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
