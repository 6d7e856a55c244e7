"""The proof by which a server shows that it belongs to a data directory: an answer that needs the directory's token.

A client asks for it on each new connection, before it sends or trusts anything (docs/decisions/0037). The proof names
the data directory and the address of the connection. So the server of a copied directory cannot give it, and neither
can a program that forwards the question to the server at another port.

An agent waits for the hook client, which imports this module at each step: it imports only what costs next to nothing.
"""
# ruff: noqa: PTH116, PTH118, PTH120, PTH123 - pathlib alone takes longer than a hook's question

import _socket
import os
import time

NONCE_BYTES = 16
# Ten times the size of a health report.
MOST_BYTES = 4096
# Keeps a proof apart from everything else that is signed with the token.
PURPOSE = "reverie server proof"
BLOCK_BYTES = 64
INNER_PAD = bytes(byte ^ 0x36 for byte in range(256))
OUTER_PAD = bytes(byte ^ 0x5C for byte in range(256))


class NotProven(Exception):
    """Report that a program answered without the proof."""


class Challenge:
    """The question for the proof on a new connection, and the check of its answer."""

    def __init__(self, connection: _socket.socket, host: str, home: str) -> None:
        self._connection = connection
        self._host = f"[{host}]" if ":" in host else host
        self._home = home
        self._nonce = os.urandom(NONCE_BYTES).hex()
        self._received = b""

    def send(self, deadline: float) -> None:
        """Ask for the proof; raise OSError if that fails."""
        port = self._connection.getpeername()[1]
        head = f"GET /healthz?nonce={self._nonce} HTTP/1.1\r\nHost: {self._host}:{port}\r\n\r\n"
        self._connection.settimeout(remaining_s(deadline))
        self._connection.sendall(head.encode("latin-1"))

    def check(self, deadline: float) -> None:
        """Read the answer and check it; raise NotProven for a wrong answer, OSError if there is none in time.

        After a TimeoutError it can be called again: what was received so far is kept.
        """
        # Computed while the server does the same.
        expected = self._compute_proof()
        body = self._read_body(deadline)
        # If the token was missing or renewed, the server answers with the current content of the file.
        if not _contains(body, expected) and not _contains(body, self._compute_proof()):
            raise NotProven

    def _compute_proof(self) -> str:
        token = _read_token(self._home)
        address = format_address(self._connection.getpeername())
        # Without a token there is nothing to prove: any program could compute this.
        return compute_proof(token, self._nonce, self._home, address) if token else ""

    def _read_body(self, deadline: float) -> bytes:
        while len(self._received) <= MOST_BYTES:
            head, end, body = self._received.partition(b"\r\n\r\n")
            if end:
                length = read_content_length(head)
                if head[9:12] != b"200" or not 0 <= length <= MOST_BYTES or len(body) > length:
                    raise NotProven
                if len(body) == length:
                    return body
            self._connection.settimeout(remaining_s(deadline))
            more = self._connection.recv(MOST_BYTES)
            if not more:
                raise ConnectionAbortedError("it closed the connection")
            self._received += more
        raise NotProven


def compute_proof(token: str, nonce: str, home: str, address: str) -> str:
    """Return the HMAC-SHA256 of a nonce, a data directory and an address, by a token, in hexadecimal."""
    key = token.encode()
    if len(key) > BLOCK_BYTES:
        key = _digest(key)
    key = key.ljust(BLOCK_BYTES, b"\0")
    message = "\n".join((PURPOSE, nonce, _identify_folder(home), address)).encode()
    return _digest(key.translate(OUTER_PAD) + _digest(key.translate(INNER_PAD) + message)).hex()


def identify_build() -> str:
    """Return a name of the installed code: a hash of its folder, and the time of its installation; "" if it is gone."""
    try:
        installed_at = os.stat(__file__).st_mtime_ns
    except OSError:
        return ""
    return f"{_digest(os.path.dirname(__file__).encode(errors='surrogateescape'))[:6].hex()}-{installed_at:x}"


def format_address(address: tuple[object, ...]) -> str:
    """Return the address of a socket as both its ends write it."""
    return f"{address[0]} {address[1]}"


def read_content_length(head: bytes) -> int:
    """Return the length of the body from the head of an answer, -1 if the head has none."""
    value = read_header(head, "Content-Length")
    return int(value) if value.isdecimal() else -1


def read_header(head: bytes, name: str) -> str:
    """Return the first value of a header from the head of an answer, "" if the head has none."""
    sought = name.lower().encode()
    for line in head.split(b"\r\n"):
        found, _, value = line.partition(b":")
        if found.strip().lower() == sought:
            return value.strip().decode("latin-1")
    return ""


def remaining_s(deadline: float) -> float:
    """Return the seconds until a deadline; raise TimeoutError after it."""
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError("it did not answer in time")
    return remaining


def _contains(body: bytes, proof: str) -> bool:
    return bool(proof) and proof.encode() in body


def _read_token(home: str) -> str:
    try:
        with open(os.path.join(home, "token"), encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _identify_folder(path: str) -> str:
    """Return an identity of a folder that all paths to it share, but not a copy of it."""
    status = os.stat(path)
    return f"{status.st_dev}:{status.st_ino}"


def _digest(content: bytes) -> bytes:
    # `hmac` and `hashlib` load OpenSSL, which takes longer than the rest of a hook's request.
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]
    except ImportError:
        try:
            # The name since Python 3.12.
            from _sha2 import sha256  # type: ignore[import-not-found]
        except ImportError:
            from hashlib import sha256
    return bytes(sha256(content).digest())
