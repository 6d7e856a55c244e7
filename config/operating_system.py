"""Differences between operating systems: limits, priorities, signals, process groups and flags of files.

Everything is tested on Linux. macOS has the same calls except those of the GNU C library; the branches for Windows
follow its documentation. No other module calls a function that one of the systems lacks. Every command imports this
module, so functions import their libraries themselves.
"""

import contextlib
import errno
import os
import signal
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

POSIX = os.name == "posix"
# No process needs more files; libraries size some tables by this limit.
MOST_FILES = 8192
CREATE_NEW_PROCESS_GROUP = 0x00000200
_GROUP_AND_OTHERS_WRITE = 0o022
# Signals that end a program: from its manager, from Ctrl-C, from a terminal that closes (not on Windows).
STOP_SIGNALS = tuple(
    number for name in ("SIGTERM", "SIGINT", "SIGHUP") if (number := getattr(signal, name, None)) is not None
)
# Flags for reading a file's bytes: do not wait for a pipe, do not follow a link.
READ_NONBLOCKING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
READ_NO_FOLLOW = READ_NONBLOCKING | getattr(os, "O_NOFOLLOW", 0)
# Windows cannot read at an offset: the threads of this process must seek and read in one step.
_seeking = threading.Lock()


def raise_file_limit() -> int:
    """Raise this process's limit of open files to the maximum, and return it."""
    try:
        import resource
    except ImportError:
        # Windows has no such limit.
        return MOST_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft == resource.RLIM_INFINITY or soft >= limit:
        return MOST_FILES if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return limit


def limit_memory(size: int, file_size: int = 0) -> None:
    """Limit the bytes of this process's address space and of the files that it writes. No effect on Windows."""
    _lower_limit("RLIMIT_AS", size)
    _lower_limit("RLIMIT_FSIZE", file_size)
    _lower_limit("RLIMIT_CORE", 0)


def limit_processor_time(seconds: int) -> None:
    """End this process after this many more seconds of processor time. No effect on Windows."""
    _lower_limit("RLIMIT_CPU", int(time.process_time()) + 1 + seconds)


def _lower_limit(name: str, value: int) -> None:
    try:
        import resource
    except ImportError:
        return
    # Set the soft limit, which can be changed again.
    kind = getattr(resource, name)
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def find_libc_function(name: str) -> Callable[..., int] | None:
    """Return a function that only some C libraries have, or None."""
    if not POSIX:
        return None
    import ctypes

    return getattr(ctypes.CDLL(None), name, None)


def is_read_only(folder: Path) -> bool:
    """Return whether a folder is on a read-only file system."""
    return POSIX and bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


def lower_priority(niceness: int) -> None:
    """Lower the priority of this process."""
    if POSIX:
        os.nice(niceness)
    else:
        import psutil

        psutil.Process().nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)


def register_fork_hooks(before: Callable[[], None], in_child: Callable[[], None]) -> None:
    """Register functions to call before each fork and in its child. No effect on systems without forks."""
    if POSIX:
        os.register_at_fork(before=before, after_in_child=in_child)


def kill_process(pid: int) -> None:
    """Kill a process; do nothing if it is gone."""
    import psutil

    try:
        psutil.Process(pid).kill()
    except psutil.NoSuchProcess:
        return


def new_process_group() -> dict[str, Any]:
    """Return the options that start a child in its own process group, which a terminal's Ctrl-C does not reach."""
    return {"process_group": 0} if POSIX else {"creationflags": CREATE_NEW_PROCESS_GROUP}


def kill_group(pid: int) -> None:
    """Kill a child and the process group that it leads; do nothing if it is gone."""
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


def read_bytes_at(descriptor: int, size: int, offset: int) -> bytes:
    """Return bytes at an offset of an open file; safe if other threads read the same descriptor."""
    if POSIX:
        return os.pread(descriptor, size, offset)
    with _seeking:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.read(descriptor, size)


def map_file(file: BinaryIO, size: int) -> Any:
    """Return the first bytes of a file, mapped read-only; Windows, which cannot replace a mapped file, reads them."""
    if not POSIX:
        file.seek(0)
        return file.read(size)
    import mmap

    return mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ)


def sync_to_disk(path: Path) -> None:
    """Flush a file or a folder to disk. Windows writes folders to disk automatically."""
    if not POSIX and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDONLY if POSIX else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path, since_ns: int = 0) -> None:
    """Flush the files and folders below a folder, and itself, to disk; with a time, only those changed since then."""
    for path in (*folder.rglob("*"), folder):
        # Another process may delete a file in the meantime.
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime_ns >= since_ns:
                sync_to_disk(path)


def make_folder(folder: Path) -> None:
    """Create a private folder and the missing ones above it, durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    # A folder above the data directory may be closed to readers.
    with contextlib.suppress(PermissionError):
        sync_to_disk(folder.parent)


def publish(draft: Path, target: Path) -> None:
    """Give a complete file its name, durably."""
    sync_to_disk(draft)
    draft.replace(target)
    sync_to_disk(target.parent)


def copy_owner(file: Path, like: os.stat_result) -> None:
    """Give a file the owner and group of another, on systems that have them."""
    status = file.stat()
    if POSIX and (like.st_uid, like.st_gid) != (status.st_uid, status.st_gid):
        os.chown(file, like.st_uid, like.st_gid)


def is_protected(folder: Path) -> bool:
    """Return whether a folder exists in which only this user or root can change files."""
    if not POSIX:
        return folder.is_dir()
    try:
        status = folder.stat()
    except OSError:
        return False
    return status.st_uid in (os.getuid(), 0) and not status.st_mode & _GROUP_AND_OTHERS_WRITE


def read_regular(path: str | os.PathLike[str], most: int, *, follow: bool = True) -> bytes:
    """Return a file's bytes; raise OSError if it is a folder, device, pipe or socket, or has more than `most` bytes.

    Without `follow`, a link is also refused. Nothing waits for the other end of a pipe.
    """
    descriptor = os.open(path, READ_NONBLOCKING if follow else READ_NO_FOLLOW)
    with open(descriptor, "rb") as stream:  # noqa: PTH123 - a descriptor
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        content = stream.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 10} KiB", str(path))
    return content
