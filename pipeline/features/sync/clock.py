"""Decide when to exchange with other machines, only from the times of files and folders."""

import time
from collections.abc import Callable

from config.paths import FileState
from pipeline.kernel.errors import StoreUnavailable
from pipeline.kernel.store.database import Databases
from pipeline.kernel.store.peers import Peers
from pipeline.kernel.store.sqlite import find_file_state

# Seconds between two requests to a bucket or another Reverie, and between two checks for local writes and new files in
# a folder.
LISTEN_S = 300.0
SEND_S = 60


class SyncClock:
    """Decide when to exchange: at the start, soon after a write, and otherwise at regular intervals."""

    def __init__(self, peers: Peers, databases: Databases, clock: Callable[[], float] = time.monotonic) -> None:
        self._databases = databases
        self._clock = clock
        self._peers = peers
        self._last: float | None = None
        self._seen: dict[str, FileState] = {}

    def is_due(self) -> bool:
        """Return whether to exchange now; intervals are counted from the last positive answer."""
        try:
            if not self._peers.exists:
                return False
            folders = self._peers.folders()
        except StoreUnavailable:
            # The exchange meets the same error and reports it.
            folders = []
        states = self._databases.states().items()
        here = {name: log if log[2] else events for name, (events, log) in states}
        # Segments arrive in these folders.
        streams = [str(stream) for folder in folders for stream in folder.glob("segments/*")]
        before, self._seen = self._seen, here | {stream: find_file_state(stream) for stream in streams}
        now = self._clock()
        if self._last is not None and before == self._seen and now - self._last < LISTEN_S:
            return False
        self._last = now
        return True
