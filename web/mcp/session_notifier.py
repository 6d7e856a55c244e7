"""Notifications of a session over stdio: changed resources and changed lists."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import anyio.to_thread
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import (
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
    event_to_notification,
)
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from pipeline.errors import InvalidField, NotFound, ServerUnreachable
from pipeline.http.event_stream import Block
from web.mcp.event_follower import EventFollower, OpenEvents
from web.mcp.offered_tools import SessionTools
from web.mcp.subscriptions import Subscriptions

# Changes within this time are sent as one notification per resource: an import changes thousands of memories.
INTERVAL_S = 1.0
RESET = "reset"
JOB_DONE = "job_done"


def no_events(_cursor: str | None) -> Iterator[Block]:
    """Raise ServerUnreachable: this server has no events."""
    raise ServerUnreachable("There are no events to follow.")


class SessionNotifier:
    """Sends the notifications of one session. It follows the events of the web server while the host wants them.

    A host of a newer version opens streams (`listen`), older ones subscribe to resources. At most one notification
    waits per resource, however slowly the host reads.
    """

    def __init__(self, open_events: OpenEvents = no_events) -> None:
        self._subscriptions = Subscriptions()
        self._follower = EventFollower(open_events, self._is_wanted, self._note)
        self._bus = InMemorySubscriptionBus()
        self._handler = ListenHandler(self._bus)
        self._streams = 0
        self._session: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: set[str] = set()
        self._sending: asyncio.Task[None] | None = None
        self._tools: SessionTools | None = None

    def follow_lists(self, tools: SessionTools) -> None:
        """Set the tools of the session, whose switches also decide about its resources."""
        self._tools = tools

    async def subscribe(self, context: Any, uri: str) -> None:
        """Notify the session of changes of a resource; raise NotFound or InvalidField if it cannot be watched."""
        self._subscriptions.add(uri)
        self._session = context.session
        await self._start()

    async def unsubscribe(self, _context: Any, uri: str) -> None:
        """Stop notifying the session of changes of a resource."""
        self._subscriptions.remove(uri)
        self._follower.wake()

    async def listen(self, context: Any, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """Serve a stream of notifications until the host closes it."""
        watched = []
        for uri in params.notifications.resource_subscriptions or ():
            try:
                self._subscriptions.add(uri)
            except (NotFound, InvalidField):
                # The protocol accepts it; it never changes.
                continue
            watched.append(uri)
        self._streams += 1
        try:
            await self._start()
            return await self._handler(context, params)
        finally:
            self._streams -= 1
            for uri in watched:
                self._subscriptions.remove(uri, all_of=False)
            self._follower.wake()

    async def send_changed_lists(self, session: Any) -> None:
        """Notify a session of lists that have changed."""
        if self._tools is None:
            return
        changed = await anyio.to_thread.run_sync(self._tools.find_changed_lists)
        if changed.tools:
            await self._send(session, ToolsListChanged())
        if changed.resources:
            await self._send(session, ResourcesListChanged())

    async def _start(self) -> None:
        self._loop = asyncio.get_running_loop()
        await anyio.to_thread.run_sync(self._follower.start, abandon_on_cancel=True)

    def _is_wanted(self) -> bool:
        return self._streams > 0 or bool(self._subscriptions.uris)

    def _note(self, event: dict[str, Any] | None) -> None:
        """Note an event in the thread that follows them; None after each connection."""
        if self._loop is not None and (event is None or event["type"] != JOB_DONE):
            self._loop.call_soon_threadsafe(self._send_soon, self._find_changed(event))

    def _find_changed(self, event: dict[str, Any] | None) -> list[str]:
        if event is None:
            return []
        return self._subscriptions.find_changed([None if event["type"] == RESET else event["memory_id"]])

    def _send_soon(self, uris: list[str]) -> None:
        self._waiting.update(uris)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send_waiting())

    async def _send_waiting(self) -> None:
        # The host may close its input in between.
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await self.send_changed_lists(self._session)
            while self._waiting:
                uris, self._waiting = self._waiting, set()
                for uri in sorted(uris.intersection(self._subscriptions.uris)) if await self._is_enabled() else ():
                    await self._send(self._session, ResourceUpdated(uri))
                await anyio.sleep(INTERVAL_S)

    async def _is_enabled(self) -> bool:
        tools = self._tools
        return tools is None or await anyio.to_thread.run_sync(lambda: tools.is_enabled(None))

    async def _send(self, session: Any, event: ServerEvent) -> None:
        if self._streams > 0 or session is None:
            await self._bus.publish(event)
        else:
            await session.send_notification(event_to_notification(event, {}))
