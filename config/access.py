"""Whether a home can be used at all: told without opening anything, for who asks how it fares in trouble."""

import os
import shutil
from pathlib import Path

from config.operating_system import is_read_only

# Less than this a store cannot even begin a transaction in.
NO_ROOM = 1024**2


def list_problems(root: Path) -> list[str]:
    """List what keeps a home from being used, with what helps; nothing for one that is not there yet."""
    try:
        if not root.exists():
            return []
        return [problem for problem in (find_access_problem(root), _find_room_problem(root)) if problem is not None]
    except OSError as error:
        return [f"{root} cannot be looked at: {error.strerror}; work as its owner"]


def find_access_problem(root: Path) -> str | None:
    """Say why nothing can be written to a folder, None where it can."""
    if not root.is_dir():
        return f"{root} is no folder; let REVERIE_HOME name one"
    if os.access(root, os.R_OK | os.W_OK | os.X_OK):
        return None
    if is_read_only(root):
        return f"{root} is on a read-only file system; mount it for writing, or let REVERIE_HOME name another home"
    owner = root.stat().st_uid
    return f"{root} belongs to somebody else (uid {owner}); work as its owner, or give it back with `chown -R`"


def _find_room_problem(root: Path) -> str | None:
    free = shutil.disk_usage(root).free
    return f"the disk of {root} has {free // 1024} KiB left; make room" if free < NO_ROOM else None
