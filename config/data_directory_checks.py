"""Check whether the data directory can be used at all, without opening any store."""

import os
import shutil
from pathlib import Path

from config.operating_system import is_read_only

# A store cannot start a transaction with less free space than this.
NO_ROOM = 1024**2


def list_problems(root: Path) -> list[str]:
    """List the problems that keep a data directory from being used, each with a remedy; empty if there is none yet."""
    try:
        if not root.exists():
            return []
        return [problem for problem in (find_access_problem(root), _find_room_problem(root)) if problem is not None]
    except OSError as error:
        return [f"{root} cannot be read: {error.strerror}; run Reverie as its owner"]


def find_access_problem(root: Path) -> str | None:
    """Return why nothing can be written to a folder, or None if it can."""
    if not root.is_dir():
        return f"{root} is not a folder; set REVERIE_HOME to a folder"
    if os.access(root, os.R_OK | os.W_OK | os.X_OK):
        return None
    if is_read_only(root):
        return f"{root} is on a read-only file system; mount it for writing, or set REVERIE_HOME to another folder"
    owner = root.stat().st_uid
    return (
        f"{root} belongs to another user (uid {owner}); run Reverie as its owner, or change the owner with `chown -R`"
    )


def _find_room_problem(root: Path) -> str | None:
    free = shutil.disk_usage(root).free
    return f"the disk of {root} has {free // 1024} KiB left; free some space" if free < NO_ROOM else None
