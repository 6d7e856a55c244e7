"""Server-sent events of a workspace: changes and the processing state of memories.

An open stream occupies a server thread, so their number and duration are limited. If all streams are in use, a client
gets the latest changes once and reconnects. https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from flask import current_app

from pipeline.bootstrap.web import WebContainer
from pipeline.errors import StoreUnavailable
from pipeline.services.timeline import read_news
from pipeline.store.work import Undigested
from pipeline.workspace import Workspace

log = logging.getLogger(__name__)

EXTENSION = "dashboard_streams"
MOST_HELD = 2
HELD_S = 25.0
POLL_S = 0.5
RETRY_MS = 3000
# After the time limit, the client reconnects immediately.
SOON_MS = 200
# A comment; writing it fails once the client has disconnected.
BEAT = b":\n\n"


class Streams:
    """Limit the number and duration of open streams, and close all when the server stops."""

    def __init__(self, most: int, stopping: threading.Event, held_s: float = HELD_S) -> None:
        self._most = most
        self._stopping = stopping
        self._held_s = held_s
        self._lock = threading.Lock()
        self._held = 0

    @contextmanager
    def hold(self) -> Iterator[bool]:
        """Reserve a stream during a block; yield whether one was free."""
        with self._lock:
            reserved = self._held < self._most
            self._held += reserved
        try:
            yield reserved
        finally:
            with self._lock:
                self._held -= reserved

    def ends_at(self) -> float:
        """Return the end of a stream that starts now (time.monotonic seconds)."""
        return time.monotonic() + self._held_s

    def rest(self) -> bool:
        """Wait for the poll interval; return False once the server stops."""
        return not self._stopping.wait(POLL_S)


def streams_of(container: WebContainer) -> Streams:
    """Return the stream limits of the running app, which leave most threads free."""
    known: Streams = current_app.extensions.setdefault(
        EXTENSION, Streams(min(MOST_HELD, container.settings.web_threads // 3), container.stopping)
    )
    return known


class Watch:
    """The changes that a page has received, and the changes since then."""

    def __init__(self, workspace: Workspace, after: int) -> None:
        self._workspace = workspace
        self._number = after
        self._digestion: Undigested | None = None

    def news(self) -> bytes:
        """Return events for all changes that were not sent yet."""
        news = read_news(self._workspace, self._number)
        events = b""
        if news.changes or news.more:
            listed = [{"id": change.memory_id, "op": change.op} for change in news.changes]
            events += _event("changes", {"changes": listed, "more": news.more}, news.number)
        # Send the state with every change, since it covers all changes up to this number.
        if news.number != self._number or news.digestion != self._digestion:
            events += _event("digestion", asdict(news.digestion), news.number)
        self._number, self._digestion = news.number, news.digestion
        return events


def events(watch: Watch, streams: Streams, has_access: Callable[[], bool] = lambda: True) -> Iterator[bytes]:
    """Yield events until the time limit, or until the caller loses access."""
    yield _retry(RETRY_MS)
    # Reserve after the first read: an unread response would never release its stream.
    with streams.hold() as held:
        ends_at = streams.ends_at()
        try:
            yield watch.news()
            while held and streams.rest():
                if time.monotonic() >= ends_at:
                    yield _retry(SOON_MS)
                    return
                if not has_access():
                    return
                yield watch.news() or BEAT
        except StoreUnavailable as error:
            log.info("event stream closed: %s", error)


def _event(name: str, data: Any, number: int) -> bytes:
    return f"id: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n".encode()


def _retry(wait_ms: int) -> bytes:
    return f"retry: {wait_ms}\n\n".encode()
