"""Connections of this machine's programs to the server of their data directory (docs/decisions/0091).

The server listens on a Unix socket in the data directory, which only its owner may change: no proof is needed. Where
there is no such socket, the server proves on loopback TCP that it belongs to the data directory.

An agent waits for the hook client, which imports this module at each step: it imports only what costs next to nothing.
"""
# ruff: noqa: PTH101, PTH108, PTH116, PTH118 - pathlib alone takes longer than a hook's request

# The part of `socket` without other modules: importing all of `socket` takes as long as starting Python.
import _socket
import os
import time

# `typing` takes as long to import as all of this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

SOCKET = "web.sock"
# The lock of the data directory's web server.
WEB_LOCK = "web.lock"
# The shortest limit of all systems, that of macOS, without the zero byte at the end.
LONGEST_PATH = 103
_OTHERS_WRITE = 0o022


def connect(home: str, deadline: float) -> _socket.socket | None:
    """Return a connection to the server of a data directory; None if it can only be reached over TCP.

    Raise ConnectionRefusedError if no server runs.
    """
    path = find_socket(home)
    if path is None:
        return None
    connection = None
    try:
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        connection.settimeout(remaining_s(deadline))
        connection.connect(path)
    except OSError as error:
        if connection is not None:
            connection.close()
        # The file system of a running server has no sockets, a sandbox forbids them here, or too many clients wait.
        if not isinstance(error, ConnectionRefusedError) and _may_run(home):
            return None
        raise ConnectionRefusedError from error
    return connection


def _may_run(home: str) -> bool:
    """Return whether a process has the lock of the web server, or the lock cannot be opened, as in a sandbox."""
    try:
        return is_locked(home, WEB_LOCK)
    except OSError:
        return True


def bind_socket(home: str) -> "socket.socket | None":
    """Return a bound socket of a data directory, in the place of one that a killed server left; None without sockets.

    The caller has the lock of the data directory's web server.
    """
    import logging
    import socket
    from contextlib import suppress

    path = find_socket(home)
    if path is None:
        return None
    bound = None
    try:
        bound = socket.socket(socket.AF_UNIX)
        if os.path.lexists(path):
            os.unlink(path)
        bound.bind(path)
        os.chmod(path, 0o600)
    except OSError as error:
        logging.getLogger(__name__).warning("clients connect over TCP, because there is no socket %s: %s", path, error)
        if bound is not None:
            bound.close()
        # Clients take a file without a listener for that of a server that has ended.
        with suppress(OSError):
            os.unlink(path)
        return None
    return bound


def find_socket(home: str) -> str | None:
    """Return the path of a data directory's socket; None if it would be too long, or others could replace the file."""
    path = os.path.join(home, SOCKET)
    if not hasattr(_socket, "AF_UNIX") or len(os.fsencode(path)) > LONGEST_PATH:
        return None
    try:
        status = os.stat(home)
    except FileNotFoundError:
        return path
    is_private = status.st_uid in (os.getuid(), 0) and not status.st_mode & _OTHERS_WRITE
    return path if is_private else None


def is_locked(home: str, name: str) -> bool:
    """Return whether a process has a lock of a data directory. No file is created."""
    try:
        descriptor = os.open(os.path.join(home, name), os.O_RDWR)
    except FileNotFoundError:
        return False
    has_lock = lock_file(descriptor)
    os.close(descriptor)
    return not has_lock


def lock_file(descriptor: int) -> bool:
    """Lock an open file until it is closed; return whether no other process has the lock."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        # Windows has no such locks: a second start finds the port in use and exits.
        return True
    except BlockingIOError:
        return False
    return True


def remaining_s(deadline: float) -> float:
    """Return the seconds until a deadline; raise TimeoutError after it."""
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError("it did not answer in time")
    return remaining


def read_content_length(head: bytes) -> int:
    """Return the length of the body from the head of an answer, -1 if the head has none."""
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip() == b"content-length" and value.strip().isdigit():
            return int(value)
    return -1
