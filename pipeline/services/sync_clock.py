"""When it is time to exchange with other machines: looked for by times of files alone, as nothing is opened for it."""

import time
from collections.abc import Callable

from config.paths import FileState, HomePaths, file_state

# How often what others wrote is looked for, and what was written here is sent, where there is anything.
LISTEN_S = 300.0
SEND_S = 60


class SyncClock:
    """Tell when it is time to exchange: soon after something was written, now and then otherwise, once at the start."""

    def __init__(self, paths: HomePaths, clock: Callable[[], float] = time.monotonic) -> None:
        self._paths = paths
        self._clock = clock
        self._last: float | None = None
        self._seen: dict[str, FileState] = {}

    def is_due(self) -> bool:
        """Tell whether to exchange now; the next answer counts from a positive one."""
        if not self._paths.peers.is_file():
            return False
        before, self._seen = self._seen, {name: self._state(name) for name in self._paths.workspace_ids()}
        now = self._clock()
        if self._last is not None and before == self._seen and now - self._last < LISTEN_S:
            return False
        self._last = now
        return True

    def _state(self, workspace: str) -> FileState:
        events = self._paths.workspace(workspace).events
        for file in (f"{events}-wal", f"{events}"):
            try:
                found = file_state(file)
            except FileNotFoundError:
                continue
            if found[2]:
                return found
        return (0, 0, 0)
