"""Server-sent events: their form, and limits for open streams.

An open stream occupies a server thread, so the number and duration of streams are limited. If all streams are in use, a
client gets the latest events once and reconnects. https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from flask import current_app

from pipeline.bootstrap.web import WebContainer
from pipeline.kernel.errors import StoreUnavailable

MEDIA_TYPE = "text/event-stream"
HELD_S = 25.0
POLL_S = 0.5
RETRY_MS = 3000
# After the time limit, the client reconnects immediately.
SOON_MS = 200
# The most streams of one kind.
MOST_HELD = 2
# A comment; writing it fails once the client has disconnected.
BEAT = b":\n\n"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Step:
    """What a stream sends next: its blocks, how many they are, the position after them, and whether more is ready."""

    blocks: bytes
    count: int
    cursor: object
    more: bool


class Streams:
    """Limit the number and duration of open streams, and close all when the server stops."""

    def __init__(self, most: int, stopping: threading.Event, held_s: float = HELD_S) -> None:
        self._free = threading.BoundedSemaphore(most)
        self._stopping = stopping
        self._held_s = held_s

    @contextmanager
    def hold(self) -> Iterator[bool]:
        """Reserve a stream during a block; yield whether one was free."""
        is_reserved = self._free.acquire(blocking=False)
        try:
            yield is_reserved
        finally:
            if is_reserved:
                self._free.release()

    def follow(self, read: Callable[[], Step | None], note_sent: Callable[[], None], most: int) -> Iterator[bytes]:
        """Yield the blocks of each step until `most` were sent, the time is over, or the server stops.

        `read` returns None to end the stream. `note_sent` is called after the blocks were handed to the connection.
        """
        with self.hold() as is_held:
            ends_at, left = self.ends_at(), most
            try:
                while (step := read()) is not None:
                    left -= step.count
                    yield step.blocks or BEAT
                    note_sent()
                    if left <= 0 or (is_held and time.monotonic() >= ends_at):
                        yield format_position(step.cursor, SOON_MS)
                        return
                    if step.more:
                        continue
                    if not is_held:
                        yield format_position(step.cursor, RETRY_MS)
                        return
                    if not self.rest():
                        return
            except StoreUnavailable as error:
                log.info("stream closed: %s", error)

    def ends_at(self) -> float:
        """Return the end of a stream that starts now (time.monotonic seconds)."""
        return time.monotonic() + self._held_s

    def rest(self) -> bool:
        """Wait for the poll interval; return False once the server stops."""
        return not self._stopping.wait(POLL_S)


def find_streams(kind: str, container: WebContainer, *, threads_each: int) -> Streams:
    """Return the limits of the running app for a kind of streams, one of which needs so many of the server's threads.

    They leave most threads free.
    """
    most = min(MOST_HELD, container.settings.web_threads // threads_each)
    return cast(Streams, current_app.extensions.setdefault(f"{kind}_streams", Streams(most, container.stopping)))


def format_event(name: str, data: Any, cursor: object) -> bytes:
    """Return an event after which a client continues at a cursor."""
    return f"id: {cursor}\nevent: {name}\ndata: {json.dumps(data)}\n\n".encode()


def format_position(cursor: object, wait_ms: int) -> bytes:
    """Return a block without an event that sets the cursor of the client, and when it reconnects."""
    return f"retry: {wait_ms}\nid: {cursor}\n\n".encode()


def format_retry(wait_ms: int) -> bytes:
    """Return a block that sets when the client reconnects."""
    return f"retry: {wait_ms}\n\n".encode()
