"""Process plumbing: one holder per role, and no child that outlives its parent."""

import json
import os
import signal
import threading
from pathlib import Path

from filelock import FileLock, Timeout

PARENT_CHECK_S = 0.5


class RoleTaken(Exception):
    """Say that another process already holds a role in this home."""

    def __init__(self, role: str, pid: int | None) -> None:
        super().__init__(f"{role} is already running" + (f" (pid {pid})" if pid else ""))
        self.role = role
        self.pid = pid


class Role:
    """Hold a role (`up`, `web`, `scheduler`) of a home for as long as this process lives.

    The lock is the operating system's, so it goes with its holder however that one ends.
    """

    def __init__(self, home: Path, name: str) -> None:
        self.name = name
        self._note = home / f"{name}.pid"
        self._lock = FileLock(home / f"{name}.lock", timeout=0)

    def take(self) -> None:
        """Take the role or raise RoleTaken."""
        try:
            self._lock.acquire()
        except Timeout as error:
            raise RoleTaken(self.name, self.holder()) from error
        self._note.write_text(json.dumps({"pid": os.getpid()}), encoding="ascii")

    def release(self) -> None:
        """Give the role back."""
        self._note.unlink(missing_ok=True)
        self._lock.release()

    def holder(self) -> int | None:
        """Return the process id of the living holder, None when nobody holds the role."""
        if not self.is_held():
            return None
        try:
            return int(json.loads(self._note.read_text(encoding="ascii"))["pid"])
        except (OSError, ValueError, KeyError):
            return None

    def is_held(self) -> bool:
        """Tell whether some process, this one included, holds the role."""
        if self._lock.is_locked:
            return True
        try:
            self._lock.acquire()
        except Timeout:
            return True
        self._lock.release()
        return False


def stop_with_parent() -> None:
    """End this process (SIGTERM, then SIGKILL) soon after its parent has gone, however that one ended."""
    parent = os.getppid()
    threading.Thread(target=_watch, args=(parent,), name="parent-watch", daemon=True).start()


def _watch(parent: int) -> None:
    waiting = threading.Event()
    while os.getppid() == parent:
        waiting.wait(PARENT_CHECK_S)
    os.kill(os.getpid(), signal.SIGTERM)
    waiting.wait(10)
    os.kill(os.getpid(), signal.SIGKILL)
