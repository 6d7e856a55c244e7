"""Run a command for as long as somebody holds our standard input open, and leave none of its family behind.

The demonstration holds the other end of that pipe, so the stack stops however the demonstration ends,
a kill that it cannot catch included.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

import psutil
from filelock import FileLock

# The process manager gives its own children five seconds before it kills them.
GRACE_S = 8.0
LEFTOVER_GRACE_S = 3.0
LOOK_EVERY_S = 0.5


def main(argv: Sequence[str]) -> int:
    """Run `LOCK COMMAND…` under the lock until the command ends or nobody wants it any more."""
    lock_path, *command = argv
    unwanted = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: unwanted.set())
    threading.Thread(target=_await_end_of_input, args=(unwanted,), daemon=True).start()
    with FileLock(lock_path, timeout=GRACE_S):
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603
        family = _watch(child, unwanted)
        code = _end(child)
        _kill(family)
    return code if code >= 0 else 128 - code


def _await_end_of_input(unwanted: threading.Event) -> None:
    while os.read(0, 4096):
        continue
    unwanted.set()


def _watch(child: "subprocess.Popen[bytes]", unwanted: threading.Event) -> set[psutil.Process]:
    """Return every process seen below the child; one whose parent died cannot be found later."""
    seen: set[psutil.Process] = set()
    while child.poll() is None:
        # Nobody else reaps the child, so after this poll its number is still its own.
        seen |= _descendants(child.pid)
        if unwanted.wait(LOOK_EVERY_S):
            break
    return seen | _descendants(child.pid) if child.poll() is None else seen


def _descendants(pid: int) -> set[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):  # one ended while we looked: the next look is complete
        return set(psutil.Process(pid).children(recursive=True))
    return set()


def _end(child: "subprocess.Popen[bytes]") -> int:
    if child.poll() is None:
        child.terminate()
    try:
        return child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


def _kill(family: set[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(list(family), timeout=LEFTOVER_GRACE_S)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended by itself after all
            process.kill()
    psutil.wait_procs(alive, timeout=LEFTOVER_GRACE_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
