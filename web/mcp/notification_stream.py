"""The stream of notifications of a session over HTTP, as server-sent events."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pipeline.services.events import Cursor, Event, EventPage, EventType
from web.mcp.http_sessions import HttpSession
from web.mcp.offered_tools import Switches
from web.streams import RETRY_MS, Step, Streams, format_retry

# Without subscriptions, a client asks this often whether its lists have changed.
IDLE_RETRY_MS = 30_000
# A client that reads slowly gets the rest after it reconnects.
MAX_NOTIFICATIONS = 2000


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
        yield from streams.follow(
            lambda: self._read_step() if has_access() and self._is_newest() else None,
            self._note_sent,
            MAX_NOTIFICATIONS,
        )

    def _read_step(self) -> Step:
        page, switches = self._read(self._cursor), self._read_switches()
        uris = self._find_changed(page.events) if switches.is_enabled else []
        self._cursor = page.cursor
        return Step(
            self._format_lists(switches) + _format_updates(uris, page.cursor), len(uris), page.cursor, page.more
        )

    def _note_sent(self) -> None:
        # Only now: a stream that is opened later repeats what was not handed to a connection.
        self._session.cursor = self._cursor

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
