"""Server-sent events of a workspace: what changed, and how far digestion has come.

A stream that is held occupies one of the server's threads, so only few are, each for a while; whoever finds them taken
is told what is new and asks again. https://html.spec.whatwg.org/multipage/server-sent-events.html
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
from pipeline.services.timeline import Undigested, read_news
from pipeline.services.workspace import Workspace

log = logging.getLogger(__name__)

EXTENSION = "dashboard_streams"
MOST_HELD = 2
HELD_S = 25.0
POLL_S = 0.5
RETRY_MS = 3000
# After its time a held stream is taken up again at once.
SOON_MS = 200
# A comment: writing it is how a server learns that nobody listens any more.
BEAT = b":\n\n"


class Streams:
    """Say which streams are held: a few at once, for their time, and none once the server stops."""

    def __init__(self, most: int, stopping: threading.Event, held_s: float = HELD_S) -> None:
        self._most = most
        self._stopping = stopping
        self._held_s = held_s
        self._lock = threading.Lock()
        self._held = 0

    @contextmanager
    def hold(self) -> Iterator[bool]:
        """Take a place during a block, and tell whether there was one."""
        with self._lock:
            taken = self._held < self._most
            self._held += taken
        try:
            yield taken
        finally:
            with self._lock:
                self._held -= taken

    def ends_at(self) -> float:
        """Return when a stream that begins now ends (time.monotonic seconds)."""
        return time.monotonic() + self._held_s

    def rest(self) -> bool:
        """Wait until it is time to look again; return False once the server stops."""
        return not self._stopping.wait(POLL_S)


def streams_of(container: WebContainer) -> Streams:
    """Return the streams of the running app: with few threads, most of them must stay free."""
    known: Streams = current_app.extensions.setdefault(
        EXTENSION, Streams(min(MOST_HELD, container.settings.web_threads // 3), container.stopping)
    )
    return known


class Watch:
    """What a page has received of a workspace, and what is new since."""

    def __init__(self, workspace: Workspace, after: int) -> None:
        self._workspace = workspace
        self._number = after
        self._digestion: Undigested | None = None

    def news(self) -> bytes:
        """Return events on everything that was not sent yet."""
        news = read_news(self._workspace, self._number)
        events = b""
        if news.changes or news.more:
            listed = [{"id": change.memory_id, "op": change.op} for change in news.changes]
            events += _event("changes", {"changes": listed, "more": news.more}, news.number)
        # Sent with every change, since it speaks for what was written up to its number.
        if news.number != self._number or news.digestion != self._digestion:
            events += _event("digestion", asdict(news.digestion), news.number)
        self._number, self._digestion = news.number, news.digestion
        return events


def events(watch: Watch, streams: Streams, is_let_in: Callable[[], bool] = lambda: True) -> Iterator[bytes]:
    """Yield events for as long as a stream may be held, and who listens may still read."""
    yield _retry(RETRY_MS)
    # Not before the first of it is asked for: of an answer that nobody reads, no end is heard of.
    with streams.hold() as held:
        ends_at = streams.ends_at()
        try:
            yield watch.news()
            while held and streams.rest():
                if time.monotonic() >= ends_at:
                    yield _retry(SOON_MS)
                    return
                if not is_let_in():
                    return
                yield watch.news() or BEAT
        except StoreUnavailable as error:
            log.info("event stream closed: %s", error)


def _event(name: str, data: Any, number: int) -> bytes:
    return f"id: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n".encode()


def _retry(wait_ms: int) -> bytes:
    return f"retry: {wait_ms}\n\n".encode()
