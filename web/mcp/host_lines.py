"""The lines of a host on standard input, and the messages to it on standard output."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Self

CHUNK = 1 << 16


class HostLines:
    """Reads lines from one descriptor and writes messages to another. Several threads may send."""

    def __init__(self, source: int, target: int) -> None:
        self._source = source
        self._target = target
        self._lock = threading.Lock()

    @classmethod
    def take_standard_streams(cls) -> Self:
        """Take both streams from this process: nothing else reads lines of the host or writes between messages."""
        source, target = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        os.close(nothing)
        return cls(source, target)

    def __iter__(self) -> Iterator[bytes]:
        """Yield each line as soon as it is complete; the last one may lack its end."""
        read = b""
        while chunk := os.read(self._source, CHUNK):
            *lines, read = (read + chunk).split(b"\n")
            yield from lines
        yield read

    def send(self, message: Any) -> None:
        """Write a message as one line; do nothing if the host has closed its end."""
        # In ASCII: a text of the host may contain characters that cannot be encoded.
        line = json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"
        with self._lock, suppress(BrokenPipeError):
            while line:
                line = line[os.write(self._target, line) :]
