"""The stream of notifications of a session over HTTP, as server-sent events."""

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pipeline.errors import StoreUnavailable
from pipeline.services.events import Cursor, Event, EventPage, EventType
from web.mcp.http_sessions import HttpSession
from web.mcp.offered_tools import Switches
from web.streams import BEAT, RETRY_MS, SOON_MS, Streams, format_position, format_retry

# Without subscriptions, a client asks this often whether its lists have changed.
IDLE_RETRY_MS = 30_000
# A client that reads slowly gets the rest after it reconnects.
MAX_NOTIFICATIONS = 2000

log = logging.getLogger(__name__)


class NotificationStream:
    """One connection of a client, from a cursor on."""

    def __init__(
        self,
        session: HttpSession,
        after: Cursor,
        read: Callable[[Cursor], EventPage],
        read_switches: Callable[[], Switches],
        note_memories: Callable[[list[str]], None],
    ) -> None:
        self._session = session
        self._cursor = after
        self._read = read
        self._read_switches = read_switches
        self._note_memories = note_memories
        self._is_newest = session.open_stream()

    def send(self, streams: Streams, has_access: Callable[[], bool]) -> Iterator[bytes]:
        """Yield notifications until a limit is reached, a newer stream opens, access ends, or the server stops."""
        yield format_retry(RETRY_MS) + self._format_lists(self._read_switches())
        if not self._session.subscriptions.uris:
            # A stream occupies a thread of the server.
            yield format_retry(IDLE_RETRY_MS)
            return
        with streams.hold() as held:
            try:
                yield from self._follow(streams, streams.ends_at(), has_access, is_held=held)
            except StoreUnavailable as error:
                log.info("notification stream closed: %s", error)

    def _follow(
        self, streams: Streams, ends_at: float, has_access: Callable[[], bool], *, is_held: bool
    ) -> Iterator[bytes]:
        left = MAX_NOTIFICATIONS
        while has_access() and self._is_newest():
            page, switches = self._read(self._cursor), self._read_switches()
            uris = self._find_changed(page.events) if switches.is_enabled else []
            left -= len(uris)
            yield self._format_lists(switches) + _format_updates(uris, page.cursor) or BEAT
            # Only now: the notifications were handed to the connection.
            self._cursor = self._session.cursor = page.cursor
            if left <= 0 or (is_held and time.monotonic() >= ends_at):
                yield format_position(self._cursor, SOON_MS)
                return
            if page.more:
                continue
            if not is_held:
                yield format_position(self._cursor, RETRY_MS)
                return
            if not streams.rest():
                return

    def _find_changed(self, events: Iterable[Event]) -> list[str]:
        ids = [None if event.type is EventType.RESET else event.memory_id for event in events]
        named = [memory_id for memory_id in ids if memory_id and self._session.subscriptions.names(memory_id)]
        if named:
            self._note_memories(named)
        return self._session.subscriptions.find_changed(ids)

    def _format_lists(self, switches: Switches) -> bytes:
        changed = self._session.compare(switches)
        blocks = [_format(f"notifications/{name}/list_changed") for name in changed._fields if getattr(changed, name)]
        return b"".join(blocks)


def _format_updates(uris: list[str], cursor: Cursor) -> bytes:
    """Return a notification per resource. The last one has the cursor: an incomplete block is sent again."""
    blocks = [_format("notifications/resources/updated", {"uri": uri}) for uri in uris]
    return b"".join([*blocks[:-1], *(f"id: {cursor}\n".encode() + block for block in blocks[-1:])])


def _format(method: str, params: dict[str, Any] | None = None) -> bytes:
    message = {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})
    return f"data: {json.dumps(message)}\n\n".encode()
