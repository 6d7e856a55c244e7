"""Whether the code that a memory is about still reads as it did.

Only a hash is compared and nothing of a file is kept or shown. A relative path cannot be followed from a server that
serves many folders, so it is kept for the reader and never checked.
"""

import errno
import hashlib
import os
import stat
import time
from functools import lru_cache
from pathlib import Path

from config.operating_system import READ_AT_ONCE
from pipeline.records import Anchor

MAX_FILE_BYTES = 4 * 1024 * 1024
KEPT = 1024
# The clocks of file systems tick slowly: what was written again within a tick still bears the same time.
SETTLED_NS = 2_000_000_000


def hash_of(anchor: Anchor) -> str | None:
    """Return the SHA-256 of the anchored text, None where there is no such text to be read."""
    if not Path(anchor.path).is_absolute():
        return None
    try:
        return _present_hash(anchor)
    except OSError:
        return None


def is_stale(anchor: Anchor) -> bool | None:
    """Tell whether the anchored text has changed or is gone; None where nobody can say."""
    if anchor.content_hash is None or not Path(anchor.path).is_absolute():
        return None
    try:
        return _present_hash(anchor) != anchor.content_hash
    except OSError:
        return None


def _present_hash(anchor: Anchor) -> str | None:
    """Return the hash of what stands there, None where no file does; raise OSError where it cannot be read."""
    try:
        status = Path(anchor.path).stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    if status.st_size > MAX_FILE_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    read = _hash if time.time_ns() - status.st_ctime_ns > SETTLED_NS else _hash.__wrapped__
    return read(anchor.path, anchor.first_line, anchor.last_line, status.st_ctime_ns, status.st_size)


@lru_cache(maxsize=KEPT)
def _hash(path: str, first: int | None, last: int | None, _changed_ns: int, size: int) -> str | None:
    # Time and size belong to the key: a file that was written since is read again. No more than its size is read, and
    # nothing is waited for, since some files of the kernel never end.
    with open(path, "rb", opener=_without_waiting) as file:
        text = file.read(size)
    if first is not None:
        lines = text.splitlines(keepends=True)
        if len(lines) < (last or first):
            return None
        text = b"".join(lines[first - 1 : last or first])
    return hashlib.sha256(text).hexdigest()


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | READ_AT_ONCE)
