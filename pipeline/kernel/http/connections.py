"""Connections to one HTTP server that stay open between requests.

This module uses `http.client` alone: importing urllib3 takes longer than the server takes to answer one request.
"""

import base64
import http.client
import select
import socket
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

CONNECT_TIMEOUT_S = 2.0
MAX_IDLE_CONNECTIONS = 4
# The characters of a path and its query that are sent as they are. All others are percent-encoded.
_UNQUOTED = "/?&=%:@!$'()*+,;~"


class NotConnected(Exception):
    """Report that no server accepts connections at the address; nothing was sent."""


class BrokenOff(Exception):
    """Report that the server accepted the connection but did not answer; it may have carried out the request."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The answer of a server."""

    status: int
    media_type: str
    body: bytes
    retry_after: str = ""


class KeptConnections:
    """Send requests to one server over connections that stay open. Several threads may use one object."""

    def __init__(
        self,
        url: str,
        timeout_s: float,
        open_socket: Callable[[], socket.socket] | None = None,
        proxy: str | None = None,
    ) -> None:
        """Take the address, a function that connects to it in another way, and the URL of an HTTP proxy."""
        address = urlsplit(url)
        self._open_socket = open_socket
        self._host, self._port = address.hostname or "", address.port
        self._is_tls, self._prefix = address.scheme == "https", address.path.rstrip("/")
        self._timeout_s = timeout_s
        self._proxy = None if proxy is None else urlsplit(proxy)
        self._proxy_headers: dict[str, str] = {}
        if self._proxy is not None and self._proxy.username is not None:
            name_and_password = f"{unquote(self._proxy.username)}:{unquote(self._proxy.password or '')}"
            self._proxy_headers["Proxy-Authorization"] = (
                f"Basic {base64.b64encode(name_and_password.encode()).decode()}"
            )
        if self._proxy is not None and not self._is_tls:
            # The request line names the server for the proxy. For TLS the proxy opens a tunnel instead.
            self._prefix = f"{address.scheme}://{address.netloc}{self._prefix}"
        self._idle: deque[http.client.HTTPConnection] = deque()

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()

    def send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> HttpAnswer:
        """Send one request once; raise NotConnected if it was not sent, BrokenOff if it was but no answer came."""
        connection = self._take_connection()
        try:
            url = quote(self._prefix + target, safe=_UNQUOTED)
            connection.request(method, url, body, {**headers, **({} if self._is_tls else self._proxy_headers)})
            with connection.getresponse() as response:
                received = response.headers
                media_type, retry_after = received.get("Content-Type", ""), received.get("Retry-After", "")
                answer = HttpAnswer(response.status, media_type, response.read(), retry_after)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise BrokenOff(str(error) or type(error).__name__) from error
        except BaseException:
            connection.close()
            raise
        self._keep(connection)
        return answer

    @contextmanager
    def stream(self, target: str, headers: Mapping[str, str]) -> Iterator[http.client.HTTPResponse]:
        """Send a GET request on a new connection, and yield the answer while it arrives; raise like `send`."""
        connection = self._connect()
        try:
            url = quote(self._prefix + target, safe=_UNQUOTED)
            connection.request("GET", url, headers={**headers, **({} if self._is_tls else self._proxy_headers)})
            yield connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise BrokenOff(str(error) or type(error).__name__) from error
        finally:
            connection.close()

    def _take_connection(self) -> http.client.HTTPConnection:
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:
                # Another thread took the last one.
                break
            # Check before the request: after it was sent it must not be repeated, because it may have been carried out.
            if self._is_alive(connection):
                return connection
            connection.close()
        return self._connect()

    def _connect(self) -> http.client.HTTPConnection:
        connection = self._create_connection()
        try:
            if self._open_socket is None:
                connection.connect()
            else:
                connection.sock = self._open_socket()
            connection.sock.settimeout(self._timeout_s)
        except (OSError, UnicodeError) as error:
            connection.close()
            raise NotConnected(str(error)) from error
        return connection

    def _create_connection(self) -> http.client.HTTPConnection:
        create = http.client.HTTPSConnection if self._is_tls else http.client.HTTPConnection
        if self._proxy is None:
            return create(self._host, self._port, timeout=CONNECT_TIMEOUT_S)
        connection = create(self._proxy.hostname or "", self._proxy.port or 80, timeout=CONNECT_TIMEOUT_S)
        if self._is_tls:
            connection.set_tunnel(self._host, self._port or 443, self._proxy_headers)
        return connection

    def _is_alive(self, connection: http.client.HTTPConnection) -> bool:
        if self._is_tls:
            # Peeking at encrypted data would consume it, so only check whether there is any.
            return not select.select([connection.sock], [], [], 0)[0]
        try:
            connection.sock.settimeout(0)
            # Between requests a server sends nothing but the end of the connection.
            connection.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            connection.sock.settimeout(self._timeout_s)
            return True
        except OSError:
            return False
        return False

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        # A connection that the server closes after its answer has no socket any more.
        if getattr(connection, "sock", None) is not None and len(self._idle) < MAX_IDLE_CONNECTIONS:
            self._idle.append(connection)
        else:
            connection.close()
