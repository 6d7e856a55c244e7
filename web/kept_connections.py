"""Connections to one HTTP server, kept open between requests.

By `http.client` alone: a command that asks one question would import urllib3 longer than the server takes to answer.
"""

import http.client
import select
import socket
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

CONNECT_TIMEOUT_S = 2.0
MOST_KEPT = 4
# What a path and its query may hold as it is; what else somebody typed is encoded.
_AS_IT_IS = "/?&=%:@!$'()*+,;~"


class NotConnected(Exception):
    """Say that nobody answers at the server's address."""


class BrokenOff(Exception):
    """Say that the server was reached and did not answer; it may have done what it was asked."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a server answered."""

    status: int
    media_type: str
    body: bytes


class KeptConnections:
    """Send requests to one server over connections that stay open; safe to use from several threads."""

    def __init__(self, url: str, timeout_s: float, check: Callable[[socket.socket], None] | None = None) -> None:
        """Take the address; `check` is called with each new connection, before anything is sent over it."""
        address = urlsplit(url)
        self._check = check
        self._host, self._port = address.hostname or "", address.port
        self._is_tls, self._prefix = address.scheme == "https", address.path.rstrip("/")
        self._timeout_s = timeout_s
        self._idle: deque[http.client.HTTPConnection] = deque()

    def close(self) -> None:
        """Close what is idle."""
        while self._idle:
            self._idle.pop().close()

    def send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> HttpAnswer:
        """Send one request, once; raise NotConnected before and BrokenOff after the server was reached.

        What the check of a new connection raises is raised too.
        """
        connection = self._take()
        try:
            connection.request(method, quote(self._prefix + target, safe=_AS_IT_IS), body, dict(headers))
            with connection.getresponse() as response:
                answer = HttpAnswer(response.status, response.headers.get("Content-Type", ""), response.read())
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise BrokenOff(str(error) or type(error).__name__) from error
        except BaseException:
            connection.close()
            raise
        self._give(connection)
        return answer

    def _take(self) -> http.client.HTTPConnection:
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:
                # Another thread took the last one.
                break
            # A dead one is noticed before a request: one that was sent is not repeated, it may have been carried out.
            if self._lives(connection):
                return connection
            connection.close()
        return self._connect()

    def _connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._is_tls else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=CONNECT_TIMEOUT_S)
        try:
            connection.connect()
        except (OSError, UnicodeError) as error:
            connection.close()
            raise NotConnected(str(error)) from error
        try:
            if self._check is not None:
                self._check(connection.sock)
            connection.sock.settimeout(self._timeout_s)
        except OSError as error:
            connection.close()
            raise BrokenOff(str(error) or type(error).__name__) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _lives(self, connection: http.client.HTTPConnection) -> bool:
        if self._is_tls:
            # What is encrypted cannot be looked at without being read.
            return not select.select([connection.sock], [], [], 0)[0]
        try:
            connection.sock.settimeout(0)
            # Between requests there is nothing to read but the end.
            connection.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            connection.sock.settimeout(self._timeout_s)
            return True
        except OSError:
            return False
        return False

    def _give(self, connection: http.client.HTTPConnection) -> None:
        # One that the server closes after its answer has no socket any more.
        if getattr(connection, "sock", None) is not None and len(self._idle) < MOST_KEPT:
            self._idle.append(connection)
        else:
            connection.close()
