"""What differs between operating systems, in one place: limits, priorities, signals, process groups, flags of files.

Linux is where all of it is tested. macOS has the same calls but for those of the GNU C library; the branches of Windows
are written after its documentation. Nothing else in the project calls what one of them lacks.
Every command imports this, so that libraries are imported where they are called.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

POSIX = os.name == "posix"
# More files than these nobody needs; tables that libraries make for all of them stay small.
MOST_FILES = 8192
CREATE_NEW_PROCESS_GROUP = 0x00000200
# What asks a program to end: by its manager, by Ctrl-C, by a terminal that closes, which Windows does not tell of.
STOP_SIGNALS = tuple(
    number for name in ("SIGTERM", "SIGINT", "SIGHUP") if (number := getattr(signal, name, None)) is not None
)
# Flags to read a file's bytes by: none waits for a pipe, and one goes through no link.
READ_AT_ONCE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
READ_NO_LINK = READ_AT_ONCE | getattr(os, "O_NOFOLLOW", 0)
# Windows has no reading from a place: seeking and reading are one step for the threads of this process.
_seeking = threading.Lock()


def raise_file_limit() -> int:
    """Let this process open as many files as it may, and return how many those are."""
    try:
        import resource
    except ImportError:
        # Windows has no such limit.
        return MOST_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return MOST_FILES if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def limit_memory(size: int) -> None:
    """Let this process use so many bytes of address space, and write no file; Windows has no such limits."""
    _lower_limit("RLIMIT_AS", size)
    _lower_limit("RLIMIT_FSIZE", 0)
    _lower_limit("RLIMIT_CORE", 0)


def limit_processor_time(seconds: int) -> None:
    """End this process after so many more seconds of processor time; Windows has no such limit."""
    _lower_limit("RLIMIT_CPU", int(time.process_time()) + 1 + seconds)


def _lower_limit(name: str, value: int) -> None:
    try:
        import resource
    except ImportError:
        return
    # The lower of two limits, which can be changed again.
    kind = getattr(resource, name)
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def find_libc_function(name: str) -> Callable[..., int] | None:
    """Return a function of the C library that only some have."""
    if not POSIX:
        return None
    import ctypes

    return getattr(ctypes.CDLL(None), name, None)


def is_read_only(folder: Path) -> bool:
    """Tell whether a folder stands on a file system that nobody may write to."""
    return POSIX and bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


def lower_priority(niceness: int) -> None:
    """Let other programs go before this process."""
    if POSIX:
        os.nice(niceness)
    else:
        import psutil

        psutil.Process().nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)


def call_around_fork(before: Callable[[], None], in_child: Callable[[], None]) -> None:
    """Have something called before each fork and in its child; without forks, nothing."""
    if POSIX:
        os.register_at_fork(before=before, after_in_child=in_child)


def kill_process(pid: int) -> None:
    """End a process at once; one that is gone is fine."""
    import psutil

    try:
        psutil.Process(pid).kill()
    except psutil.NoSuchProcess:
        return


def own_group() -> dict[str, Any]:
    """Return how a child is started in a group of its own, which a terminal's Ctrl-C does not reach."""
    return {"process_group": 0} if POSIX else {"creationflags": CREATE_NEW_PROCESS_GROUP}


def kill_group(pid: int) -> None:
    """End a child that leads a group of its own, and all of the group; one that is gone is fine."""
    if POSIX:
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
    else:
        for child in _list_children(pid):
            kill_process(child)
        kill_process(pid)


def _list_children(pid: int) -> list[int]:
    import psutil

    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Return bytes from a place of an open file, whoever else reads it."""
    if POSIX:
        return os.pread(descriptor, size, offset)
    with _seeking:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.read(descriptor, size)


def sync_place(place: Path) -> None:
    """Have a file or a folder on disk, for good; Windows keeps its folders by itself."""
    if not POSIX and place.is_dir():
        return
    descriptor = os.open(place, os.O_RDONLY if POSIX else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def hand_over(file: Path, like: os.stat_result) -> None:
    """Give a file the owner and group of another, where files have such."""
    own = file.stat()
    if POSIX and (like.st_uid, like.st_gid) != (own.st_uid, own.st_gid):
        os.chown(file, like.st_uid, like.st_gid)
