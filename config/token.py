"""The bearer token as its file says now: a new one counts from the next request on, in every process."""

import os
from pathlib import Path


class CurrentToken:
    """Return a home's token when called; read again only when the file changed."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: tuple[tuple[int, int, int] | None, str] = (None, "")

    def __call__(self) -> str:
        """Return the token; while there is none in the file the last known one, "" where there never was any."""
        mark, token = self._known
        try:
            status = os.stat(self._file)  # noqa: PTH116 - before every request; Path.stat costs twice as much
            found = status.st_ino, status.st_mtime_ns, status.st_size
            if found != mark:
                token = self._file.read_text(encoding="ascii", errors="replace").strip() or token
                self._known = (found, token)
        except OSError:
            # Gone or out of reach: whoever knew it goes on with it.
            return token
        return token
