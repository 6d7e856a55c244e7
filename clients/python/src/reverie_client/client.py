"""The sync and the async client: one list of calls, and two transports."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

import httpx

from . import calls
from .answers import Event
from .errors import PROBLEM_OF_STATUS, Problem, ServerUnreachable, UnexpectedAnswer
from .home import Server, find_server
from .request import Listing, Request
from .watching import PATH, Watch

P = ParamSpec("P")
T = TypeVar("T")

TIMEOUT_S = 30.0
RETRIES = 2
FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 5.0


def _bind(send: Callable[[Any], Any], build: Callable[P, Any]) -> Callable[P, Any]:
    def call(*args: P.args, **kwargs: P.kwargs) -> Any:
        return send(build(*args, **kwargs))

    return update_wrapper(call, build)


class Call(Generic[P, T]):
    """A method of both clients with the same arguments: it returns the answer, or an awaitable."""

    def __init__(self, build: Callable[P, Request[T]]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: "Reverie", owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: "AsyncReverie", owner: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, client: "Reverie | AsyncReverie | None", owner: type) -> Any:
        """Return the call bound to a client."""
        return self if client is None else _bind(client.send, self._build)


class ListCall(Generic[P, T]):
    """A method of both clients that yields the items of a list page by page."""

    def __init__(self, build: Callable[P, Listing[T]]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: "Reverie", owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: "AsyncReverie", owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, client: "Reverie | AsyncReverie | None", owner: type) -> Any:
        """Return the call bound to a client."""
        return self if client is None else _bind(client.iterate, self._build)


class WatchCall(Generic[P]):
    """A method of both clients that yields events and does not end."""

    def __init__(self, build: Callable[P, Watch]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: "Reverie", owner: type) -> Callable[P, Iterator[Event]]: ...
    @overload
    def __get__(self, client: "AsyncReverie", owner: type) -> Callable[P, AsyncIterator[Event]]: ...
    def __get__(self, client: "Reverie | AsyncReverie | None", owner: type) -> Any:
        """Return the call bound to a client."""
        return self if client is None else _bind(client.follow, self._build)


class Contract:
    """The calls of both clients. Without arguments, a client finds the server and the token of the data directory."""

    health = Call(calls.health)
    remember = Call(calls.remember)
    remember_all = Call(calls.remember_all)
    memories = ListCall(calls.memories)
    memory = Call(calls.memory)
    edit = Call(calls.edit)
    archive = Call(calls.archive)
    restore = Call(calls.restore)
    purge = Call(calls.purge)
    recall = Call(calls.recall)
    recall_sessions = Call(calls.recall_sessions)
    prepare = Call(calls.prepare)
    set_fact = Call(calls.set_fact)
    fact = Call(calls.fact)
    end_fact = Call(calls.end_fact)
    fact_history = ListCall(calls.fact_history)
    facts = ListCall(calls.facts)
    add_goal = Call(calls.add_goal)
    edit_goal = Call(calls.edit_goal)
    goals = ListCall(calls.goals)
    lessons = ListCall(calls.lessons)
    report_lesson = Call(calls.report_lesson)
    workspaces = ListCall(calls.workspaces)
    stats = Call(calls.stats)
    queue = Call(calls.queue)
    watch = WatchCall(calls.watch)

    _connections: type[httpx.Client | httpx.AsyncClient]

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        workspace: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
        transport: Any = None,
    ) -> None:
        self.server = find_server(url, token, workspace)
        self._retries = retries
        # Use a proxy only for other machines.
        self._http: Any = self._connections(
            base_url=self.server.url, timeout=timeout_s, transport=transport, trust_env=not self.server.local
        )

    def _retry_delay(self, request: Request[Any], outcome: httpx.Response | httpx.TransportError, tries: int) -> float:
        """Return the seconds to wait before a retry, below 0 for no retry."""
        if tries > self._retries:
            return -1.0
        delay = FIRST_DELAY_S * 2.0 ** (tries - 1)
        if isinstance(outcome, httpx.Response):
            # The server stored nothing.
            asked_for = _retry_after(outcome)
            busy = outcome.status_code == 503 and asked_for is not None
            return min(max(delay, asked_for or 0.0), LONGEST_DELAY_S) if busy else -1.0
        # Without a connection nothing was sent.
        unsent = isinstance(outcome, (httpx.ConnectError, httpx.ConnectTimeout))
        return delay if request.safe or unsent else -1.0


class Reverie(Contract):
    """Reverie over HTTP. Several threads may use one object."""

    _connections = httpx.Client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._http.close()

    def send(self, request: Request[T]) -> T:
        """Send a request, and retry it if that is safe and may help; return the answer or raise ReverieError."""
        tries = 0
        while True:
            outcome = self._try(request)
            tries += 1
            delay = self._retry_delay(request, outcome, tries)
            if delay < 0:
                return _read_outcome(request, outcome, self.server)
            time.sleep(delay)

    def iterate(self, listing: Listing[T]) -> Iterator[T]:
        """Yield the items of a list page by page."""
        cursor, count = None, 0
        while True:
            page = self.send(listing.next_request(cursor, count))
            yield from page.items
            cursor, count = page.next_cursor, count + len(page.items)
            if listing.is_complete(cursor, count):
                return

    def follow(self, watch: Watch) -> Iterator[Event]:
        """Yield events, and reconnect when a connection ends; raise ReverieError if the first one fails."""
        is_connected = False
        while True:
            try:
                with self._http.stream(**_build_stream(watch, self.server)) as answer:
                    if not answer.is_success:
                        answer.read()
                        _check_stream(answer, self.server, is_connected=is_connected)
                    else:
                        is_connected = True
                        for line in answer.iter_lines():
                            if (event := watch.read_line(line)) is not None:
                                yield event
            except httpx.TransportError as error:
                if not is_connected:
                    raise _describe_unreachable(error, self.server) from error
            time.sleep(watch.retry_s)

    def _try(self, request: Request[Any]) -> httpx.Response | httpx.TransportError:
        try:
            answer: httpx.Response = self._http.request(**_build_arguments(request, self.server))
        except httpx.TransportError as error:
            return error
        return answer


class AsyncReverie(Contract):
    """Reverie over HTTP, for asyncio."""

    _connections = httpx.AsyncClient

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    async def send(self, request: Request[T]) -> T:
        """Send a request, and retry it if that is safe and may help; return the answer or raise ReverieError."""
        tries = 0
        while True:
            outcome = await self._try(request)
            tries += 1
            delay = self._retry_delay(request, outcome, tries)
            if delay < 0:
                return _read_outcome(request, outcome, self.server)
            await asyncio.sleep(delay)

    async def iterate(self, listing: Listing[T]) -> AsyncIterator[T]:
        """Yield the items of a list page by page."""
        cursor, count = None, 0
        while True:
            page = await self.send(listing.next_request(cursor, count))
            for item in page.items:
                yield item
            cursor, count = page.next_cursor, count + len(page.items)
            if listing.is_complete(cursor, count):
                return

    async def follow(self, watch: Watch) -> AsyncIterator[Event]:
        """Yield events, and reconnect when a connection ends; raise ReverieError if the first one fails."""
        is_connected = False
        while True:
            try:
                async with self._http.stream(**_build_stream(watch, self.server)) as answer:
                    if not answer.is_success:
                        await answer.aread()
                        _check_stream(answer, self.server, is_connected=is_connected)
                    else:
                        is_connected = True
                        async for line in answer.aiter_lines():
                            if (event := watch.read_line(line)) is not None:
                                yield event
            except httpx.TransportError as error:
                if not is_connected:
                    raise _describe_unreachable(error, self.server) from error
            await asyncio.sleep(watch.retry_s)

    async def _try(self, request: Request[Any]) -> httpx.Response | httpx.TransportError:
        try:
            answer: httpx.Response = await self._http.request(**_build_arguments(request, self.server))
        except httpx.TransportError as error:
            return error
        return answer


def _build_headers(server: Server, media_type: str) -> dict[str, str]:
    return {
        "Accept": media_type,
        "Authorization": f"Bearer {server.token()}",
        "X-Reverie-Workspace": server.workspace,
        **({"X-Reverie-Incognito": server.incognito} if server.incognito else {}),
    }


def _build_stream(watch: Watch, server: Server) -> dict[str, Any]:
    headers = _build_headers(server, "text/event-stream")
    return {"method": "GET", "url": PATH, "headers": headers, "params": watch.begin()}


def _check_stream(answer: httpx.Response, server: Server, *, is_connected: bool) -> None:
    """Raise the problem of an answer, unless a server that was connected is only busy or restarting."""
    if not is_connected or answer.status_code not in {429, 502, 503}:
        raise _describe_problem(answer, server)


def _build_arguments(request: Request[Any], server: Server) -> dict[str, Any]:
    headers = _build_headers(server, "application/json")
    arguments = {"method": request.method, "url": request.path, "headers": headers, "params": request.query or None}
    return arguments if request.body is None else arguments | {"json": request.body}


def _read_outcome(request: Request[T], outcome: httpx.Response | httpx.TransportError, server: Server) -> T:
    if isinstance(outcome, httpx.TransportError):
        raise _describe_unreachable(outcome, server) from outcome
    if outcome.is_success:
        return request.read_answer(_read_json(outcome, server))
    raise _describe_problem(outcome, server)


def _describe_unreachable(error: httpx.TransportError, server: Server) -> ServerUnreachable:
    if isinstance(error, httpx.TimeoutException):
        return ServerUnreachable(f"The server at {server.url} did not answer in time. Try again later.")
    return ServerUnreachable(f"No Reverie server answers at {server.url} ({error}). Start it with `reverie up`.")


def _describe_problem(outcome: httpx.Response, server: Server) -> Problem:
    document = _read_json(outcome, server)
    if not outcome.headers.get("Content-Type", "").startswith("application/problem+json"):
        raise UnexpectedAnswer(
            f"The program at {server.url} is not a Reverie server (HTTP {outcome.status_code}). Check the address."
        )
    return PROBLEM_OF_STATUS.get(outcome.status_code, Problem)(outcome.status_code, document, _retry_after(outcome))


def _read_json(answer: httpx.Response, server: Server) -> dict[str, Any]:
    try:
        document = answer.json()
    except ValueError as error:
        raise UnexpectedAnswer(f"The program at {server.url} is not a Reverie server. Check the address.") from error
    if not isinstance(document, dict):
        raise UnexpectedAnswer(f"The program at {server.url} is not a Reverie server. Check the address.")
    return document


def _retry_after(answer: httpx.Response) -> float | None:
    value = answer.headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None
