"""The proof by which a server shows on TCP that it belongs to a data directory: it needs the directory's token.

Programs of this machine ask for it where there is no Unix socket, before they send or trust anything
(docs/decisions/0037). The proof names the data directory and the address of the connection. So the server of a copied
directory cannot give it, and neither can a program that forwards the question to the server at another port.
"""

import hmac
import os
import socket
from pathlib import Path

from web.http.local_connection import connect, read_content_length, remaining_s

NONCE_BYTES = 16
# Ten times the size of a health report.
MOST_BYTES = 4096
# Keeps a proof apart from everything else that is signed with the token.
PURPOSE = "reverie server proof"


class NotProven(ConnectionRefusedError):
    """Report that a program did not prove to be the server: it was sent nothing but the question."""


def connect_to_server(home: str, host: str, port: int, deadline: float) -> socket.socket:
    """Return a connection to the server of a data directory; raise OSError if it cannot be reached."""
    local = connect(home, deadline)
    return connect_with_proof(home, host, port, deadline) if local is None else socket.socket(fileno=local.detach())


def connect_with_proof(home: str, host: str, port: int, deadline: float) -> socket.socket:
    """Return a TCP connection to the server of a data directory; raise ConnectionRefusedError if it is not proven."""
    connection = socket.create_connection((host, port), timeout=remaining_s(deadline))
    try:
        _demand_proof(connection, home, host, deadline)
    except OSError as error:
        connection.close()
        raise NotProven from error
    return connection


def _demand_proof(connection: socket.socket, home: str, host: str, deadline: float) -> None:
    """Ask for the proof and check the answer; raise OSError if it is wrong or does not come in time."""
    nonce = os.urandom(NONCE_BYTES).hex()
    name, address = f"[{host}]" if ":" in host else host, connection.getpeername()
    head = f"GET /healthz?nonce={nonce} HTTP/1.1\r\nHost: {name}:{address[1]}\r\n\r\n"
    connection.sendall(head.encode("latin-1"))
    body = _read_body(connection, deadline)
    # Read after the answer, for which the server creates a lost token again.
    token = Path(home, "token").read_text(encoding="ascii", errors="replace").strip()
    # Without a token there is nothing to prove: any program could compute this.
    if not token or compute_proof(token, nonce, home, format_address(address)).encode() not in body:
        raise NotProven


def _read_body(connection: socket.socket, deadline: float) -> bytes:
    received = b""
    while len(received) <= MOST_BYTES:
        head, end, body = received.partition(b"\r\n\r\n")
        if end and len(body) >= read_content_length(head):
            return body
        connection.settimeout(remaining_s(deadline))
        more = connection.recv(MOST_BYTES)
        if not more:
            break
        received += more
    raise NotProven


def compute_proof(token: str, nonce: str, home: str, address: str) -> str:
    """Return the HMAC-SHA256 of a nonce, a data directory and an address, by a token, in hexadecimal."""
    # All paths to the folder share this identity, but not a copy of it.
    folder = Path(home).stat()
    message = "\n".join((PURPOSE, nonce, f"{folder.st_dev}:{folder.st_ino}", address))
    return hmac.digest(token.encode(), message.encode(), "sha256").hex()


def format_address(address: tuple[object, ...]) -> str:
    """Return the address of a socket as both its ends write it."""
    return f"{address[0]} {address[1]}"
