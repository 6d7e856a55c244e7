"""Decide when to exchange with other machines, only from the times of files and folders."""

import time
from collections.abc import Callable
from pathlib import Path

from config.paths import FileState, file_state
from pipeline.errors import StoreUnavailable
from pipeline.store.database import Databases
from pipeline.store.peers import Peers

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
        here = {name: log if log[2] else events for name, (events, log) in self._databases.states().items()}
        # The folders that receive segments.
        there = {str(stream): _state_of(stream) for folder in folders for stream in folder.glob("segments/*")}
        before, self._seen = self._seen, here | there
        now = self._clock()
        if self._last is not None and before == self._seen and now - self._last < LISTEN_S:
            return False
        self._last = now
        return True


def _state_of(path: Path) -> FileState:
    """Return the state of a file or folder, zeros if it does not exist."""
    try:
        return file_state(path)
    except FileNotFoundError:
        return (0, 0, 0)
