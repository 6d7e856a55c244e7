"""MCP over standard input and output, where a host may have been answered already."""

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter


@dataclass(frozen=True, slots=True)
class Opening:
    """The first line of a conversation, as the SDK shall read it, and whether its answer was given already."""

    line: str
    answered: bool


def serve_stdio(server: Server[Any], opening: Opening) -> None:
    """Serve one host until it closes standard input."""
    anyio.run(_serve, server, opening)


async def _serve(server: Server[Any], opening: Opening) -> None:
    first = _parsed(opening.line)
    omitted = first.message.id if opening.answered and isinstance(first, SessionMessage) else None  # type: ignore[union-attr]  # only a request is answered
    async with stdio_server() as (read, write):
        await server.run(Replaying(first, read), Omitting(omitted, write), server.create_initialization_options())


def _parsed(line: str) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        # The SDK answers what it could not read.
        return error


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
    """A stream of messages that begins with one that was read before."""

    def __init__(self, first: SessionMessage | Exception, rest: Any) -> None:
        super().__init__(rest)
        self._first: SessionMessage | Exception | None = first

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        if self._first is None:
            received: SessionMessage | Exception = await self._inner.receive()
            return received
        first, self._first = self._first, None
        return first

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class Omitting(_Wrapped):
    """A stream of messages that leaves out the answer to one request, once."""

    def __init__(self, request_id: str | int | None, rest: Any) -> None:
        super().__init__(rest)
        self._omitted = request_id

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message, unless it is the answer that was given already."""
        message = item.message
        if (
            self._omitted is not None
            and isinstance(message, JSONRPCResponse | JSONRPCError)
            and message.id == self._omitted
        ):
            self._omitted = None
            return
        await self._inner.send(item)
