"""Events of a workspace for its pages: changes and the processing state of memories."""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict

from flask import current_app

from pipeline.bootstrap.web import WebContainer
from pipeline.errors import StoreUnavailable
from pipeline.services.timeline import read_news
from pipeline.store.work import Undigested
from pipeline.workspace import Workspace
from web.streams import BEAT, RETRY_MS, SOON_MS, Streams, format_event, format_retry

log = logging.getLogger(__name__)

EXTENSION = "dashboard_streams"
MOST_HELD = 2


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
            events += format_event("changes", {"changes": listed, "more": news.more}, news.number)
        # Send the state with every change, since it covers all changes up to this number.
        if news.number != self._number or news.digestion != self._digestion:
            events += format_event("digestion", asdict(news.digestion), news.number)
        self._number, self._digestion = news.number, news.digestion
        return events


def events(watch: Watch, streams: Streams, has_access: Callable[[], bool] = lambda: True) -> Iterator[bytes]:
    """Yield events until the time limit, or until the caller loses access."""
    yield format_retry(RETRY_MS)
    # Reserve after the first read: an unread response would never release its stream.
    with streams.hold() as held:
        ends_at = streams.ends_at()
        try:
            yield watch.news()
            while held and streams.rest():
                if time.monotonic() >= ends_at:
                    yield format_retry(SOON_MS)
                    return
                if not has_access():
                    return
                yield watch.news() or BEAT
        except StoreUnavailable as error:
            log.info("event stream closed: %s", error)
