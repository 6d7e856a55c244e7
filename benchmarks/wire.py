"""A keep-alive HTTP client that costs as little as it can: on a small machine it takes time from what it measures.

Requests are made before the clock runs and answers are parsed after it stopped.
"""

import json
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

HOST = "127.0.0.1"
TIMEOUT_S = 60.0
CHUNK = 1 << 16


def post(path: str, body: object, token: str, workspace: str = "default") -> bytes:
    """Make the bytes of a POST request."""
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {token}\r\n"
        f"X-Reverie-Workspace: {workspace}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    # One packet: a body sent after its head would wait for a delayed acknowledgement.
    return head.encode() + data


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it came and how long that took, in milliseconds."""

    status: int
    body: bytes
    took_ms: float

    def json(self) -> Any:
        """Parse the body."""
        return json.loads(self.body)


class Wire:
    """One connection; not for two threads at once."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), timeout=TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.close()

    def ask(self, request: bytes) -> Answer:
        """Send one request and read its whole answer."""
        began = time.perf_counter()
        self._socket.sendall(request)
        received = self._more()
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self._more()
        head = received[:end]
        length = _content_length(head)
        parts, have = [received[end + 4 :]], len(received) - end - 4
        while have < length:
            parts.append(self._more())
            have += len(parts[-1])
        took = (time.perf_counter() - began) * 1000
        return Answer(int(head[9:12]), b"".join(parts), took)

    def ask_all(self, requests: Sequence[bytes]) -> list[Answer]:
        """Send requests one after the other."""
        return [self.ask(request) for request in requests]

    def _more(self) -> bytes:
        data = self._socket.recv(CHUNK)
        if not data:
            raise ConnectionError("the server closed the connection")
        return data


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise ConnectionError(f"an answer of no length: {head[:80]!r}")
