"""Ask a process of our own program that a hostile file may end: only that process ends, and starts again."""

import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from typing import IO, TypeVar

Answer = TypeVar("Answer")


class LimitedProcess:
    """A process that answers requests. It starts with the first request, and with the first one after `stop`."""

    def __init__(self, *arguments: str) -> None:
        self._command = [sys.executable, "-I", *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        # Whether the last answer took too long.
        self.is_late = False

    def send(self, request: bytes) -> None:
        """Send a request; raise OSError if the process cannot be started."""
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        assert self._process.stdin is not None
        # A process that has ended does not answer.
        with suppress(OSError):
            self._process.stdin.write(request)
            self._process.stdin.flush()

    def receive(self, read: Callable[[IO[bytes]], Answer], seconds: float) -> Answer:
        """Return what a function reads of the output; the process is killed if that takes longer."""
        process, self.is_late = self._process, False
        if process is None or process.stdout is None:
            # Another thread stopped it.
            return read(BytesIO())
        watch = threading.Timer(seconds, self._kill_late, (process,))
        watch.start()
        try:
            return read(process.stdout)
        finally:
            watch.cancel()

    def _kill_late(self, process: "subprocess.Popen[bytes]") -> None:
        self.is_late = True
        process.kill()

    def stop(self) -> None:
        """Stop the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in filter(None, (process.stdin, process.stdout)):
                with suppress(OSError):
                    pipe.close()
