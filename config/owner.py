"""Name a process so that others can tell whether it still lives."""

import os
import socket

import psutil


def process_owner() -> str:
    """Return this process's name: host, process id, start time."""
    return f"{socket.gethostname()}:{os.getpid()}:{psutil.Process().create_time():.2f}"


def is_alive(owner: str) -> bool:
    """Tell whether the named process lives; one on another host is taken to live, its lease decides."""
    host, pid, started = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return True
    try:
        return f"{psutil.Process(int(pid)).create_time():.2f}" == started
    except psutil.NoSuchProcess:
        return False
