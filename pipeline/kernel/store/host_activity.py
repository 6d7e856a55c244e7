"""When each host was last heard, shown something and recorded: empty files whose times are the facts.

No table: hooks of an incognito session leave no run, and must still prove that they work. A time says nothing of what
was said.
"""

import time
from enum import StrEnum
from pathlib import Path

# A file is touched again after this time.
RESOLUTION_S = 5.0


class Sign(StrEnum):
    """What was seen of a host."""

    HOOK = "hook"
    SHOWN = "shown"
    TURN_ENDED = "turn-ended"
    TURN_TAKEN = "turn-taken"


class HostActivity:
    """The times of a data directory's hosts, in seconds since the epoch."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._noted: dict[tuple[str, Sign], float] = {}

    def note(self, host: str, sign: Sign) -> None:
        """Note that a host gave a sign now."""
        now = time.time()
        if now - self._noted.get((host, sign), 0.0) < RESOLUTION_S:
            return
        self._noted[host, sign] = now
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._file(host, sign).touch(mode=0o600)

    def read(self, host: str, sign: Sign) -> float | None:
        """Return when a host last gave a sign, None if it never did."""
        try:
            return self._file(host, sign).stat().st_mtime
        except FileNotFoundError:
            return None

    def _file(self, host: str, sign: Sign) -> Path:
        return self._folder / f"{host}.{sign}"
