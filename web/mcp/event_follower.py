"""Follow the events of the web server in a thread, as long as a session wants them."""

import json
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

from pipeline.errors import ReverieError
from pipeline.http.event_stream import Block

# How long a new subscription waits for the connection, so that no later change is missed.
CONNECT_S = 10.0
RETRY_S = 3.0
# While the server is down, the thread asks for it at growing intervals. It does not start the server again.
LONGEST_RETRY_S = 60.0

log = logging.getLogger(__name__)

# Returns the blocks of one connection that continues after a cursor; without one it starts now.
OpenEvents = Callable[[str | None], Iterator[Block]]


class EventFollower:
    """Reads events until they are no longer wanted. `on_event` gets each event, and None after each connection."""

    def __init__(
        self, open_events: OpenEvents, is_wanted: Callable[[], bool], on_event: Callable[[dict[str, Any] | None], None]
    ) -> None:
        self._open_events = open_events
        self._is_wanted = is_wanted
        self._on_event = on_event
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._connected = threading.Event()
        self._pause = threading.Event()

    def start(self) -> None:
        """Start the thread unless it runs, and wait until it is connected, or until the wait takes too long."""
        with self._lock:
            if self._thread is None:
                self._connected.clear()
                self._pause.clear()
                self._thread = threading.Thread(target=self._run, name="mcp-events", daemon=True)
                self._thread.start()
        self._connected.wait(CONNECT_S)

    def wake(self) -> None:
        """End the wait between two connections, to check whether events are still wanted."""
        self._pause.set()

    def _run(self) -> None:
        cursor: str | None = None
        away_s = RETRY_S
        while not self._ends():
            wait_s = RETRY_S
            try:
                for block in self._open_events(cursor):
                    self._connected.set()
                    away_s = RETRY_S
                    if block.retry_ms is not None:
                        wait_s = block.retry_ms / 1000
                    if block.data:
                        self._on_event(json.loads(block.data))
                    cursor = block.id or cursor
                self._on_event(None)
            except (ReverieError, OSError) as error:
                log.info("events are not followed: %s", error)
                wait_s, away_s = away_s, min(2 * away_s, LONGEST_RETRY_S)
            except RuntimeError:
                # The event loop of the session has ended.
                return
            self._pause.wait(wait_s)
            self._pause.clear()

    def _ends(self) -> bool:
        with self._lock:
            if self._is_wanted():
                return False
            self._thread = None
            return True
