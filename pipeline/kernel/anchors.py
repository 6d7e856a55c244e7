"""Check whether the code that a memory refers to is unchanged.

Only a hash is compared; no part of a file is stored or shown. A relative path has no meaning for a server of many
folders, so it is stored for the reader but never checked. A path that starts with `./` came from another machine and
starts at this machine's checkout of the workspace.
"""

import errno
import hashlib
import os
import stat
import time
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from config.operating_system import READ_NONBLOCKING
from pipeline.kernel.records import Anchor

MAX_FILE_BYTES = 4 * 1024 * 1024
KEPT = 1024
# File systems have coarse clocks: a file that is written twice within a tick keeps its modification time.
CLOCK_TICK_NS = 2_000_000_000
IN_CHECKOUT = "./"


def find_checkout(folder: str) -> str | None:
    """Return the root of the git checkout that contains a folder, None outside of a checkout."""
    path = Path(folder)
    if not path.is_absolute():
        return None
    return next((str(parent) for parent in (path, *path.parents) if os.path.exists(parent / ".git")), None)  # noqa: PTH110 - never raises


def path_in_checkout(path: str, checkout: str | None) -> str:
    """Return an absolute path as it is sent to other machines: relative to the checkout, or else the file name."""
    absolute = Path(path)
    if checkout is not None and absolute.is_relative_to(checkout):
        return f"{IN_CHECKOUT}{absolute.relative_to(checkout).as_posix()}"
    return absolute.name


def locate(anchor: Anchor, checkout: str | None) -> Anchor:
    """Return another machine's anchor with its path in this machine's checkout; return other anchors unchanged."""
    if checkout is None or not anchor.path.startswith(IN_CHECKOUT):
        return anchor
    path = Path(os.path.normpath(Path(checkout) / anchor.path))
    return replace(anchor, path=str(path)) if path.is_relative_to(checkout) else anchor


def is_missing(anchor: Anchor) -> bool:
    """Return whether the anchored file is missing."""
    try:
        return Path(anchor.path).is_absolute() and _find_status(anchor) is None
    except OSError:
        return False


def hash_of(anchor: Anchor) -> str | None:
    """Return the SHA-256 of the anchored text, None if it cannot be read."""
    if not Path(anchor.path).is_absolute():
        return None
    try:
        return _present_hash(anchor)
    except OSError:
        return None


def is_stale(anchor: Anchor) -> bool | None:
    """Return whether the anchored text has changed or is gone; None if that is unknown."""
    if anchor.content_hash is None or not Path(anchor.path).is_absolute():
        return None
    try:
        return _present_hash(anchor) != anchor.content_hash
    except OSError:
        return None


def _present_hash(anchor: Anchor) -> str | None:
    """Return the hash of the current text, None if there is no file; raise OSError if it cannot be read."""
    status = _find_status(anchor)
    if status is None or not stat.S_ISREG(status.st_mode):
        return None
    if status.st_size > MAX_FILE_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    read = _hash if time.time_ns() - status.st_ctime_ns > CLOCK_TICK_NS else _hash.__wrapped__
    return read(anchor.path, anchor.first_line, anchor.last_line, status.st_ctime_ns, status.st_size)


def _find_status(anchor: Anchor) -> os.stat_result | None:
    try:
        return Path(anchor.path).stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


@lru_cache(maxsize=KEPT)
def _hash(path: str, first: int | None, last: int | None, _changed_ns: int, size: int) -> str | None:
    # Time and size are part of the key: a changed file is read again. Read at most its size without waiting, because
    # some kernel files never end.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | READ_NONBLOCKING)) as file:
        text = file.read(size)
    if first is not None:
        lines = text.splitlines(keepends=True)
        if len(lines) < (last or first):
            return None
        text = b"".join(lines[first - 1 : last or first])
    return hashlib.sha256(text).hexdigest()
