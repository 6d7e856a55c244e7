"""The HTTP server: waitress, with few and short connections for unauthenticated clients.

Any program on this machine can open connections, and a hook must not wait for them. Unauthenticated connections are
closed first if there are too many, and slow senders and readers are closed after a timeout.
"""

import contextlib
import errno
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import MultiSocketServer, TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher, WSGITask
from waitress.utilities import RequestEntityTooLarge

# Maximum number of connections, and of unauthenticated ones; fewer if the limit of open files is low.
MOST_CONNECTIONS = 256
MOST_STRANGERS = 32
# A connection may need a file for its socket, its long request and its long answer; the stores need files too.
FILES_EACH = 4
# Reserved for waitress' own sockets, and for new clients while all others are being answered.
SPARE = 8
# How long an unauthenticated client may take for a request, or be idle; authenticated clients get more time.
STRANGER_S = 10.0
REQUEST_S = 60.0
IDLE_S = 120.0
# A client that reads nothing of its answer for this time is disconnected.
STUCK_S = 30.0
# The request line and headers: a query of 4,000 letters in any script, and a cookie.
MAX_HEADER_BYTES = 64 * 1024
# How much of a too large body is read and discarded after the answer. Otherwise a client that sends its body before it
# reads would see a reset connection. Unauthenticated clients cannot make the server read more than the second limit.
DISCARDED_BYTES, DISCARDED_OF_STRANGER_BYTES = 64 * 1024 * 1024, 256 * 1024
# Interval of the check for overdue connections, and the pause in accepting when no file is left.
LOOK_S = 1
REST_S = 0.2

# The address of clients at the Unix socket.
LOCAL_PEER = ("127.0.0.1", 0)

# An application by PEP 3333.
Wsgi = Callable[[dict[str, Any], Any], Iterable[bytes]]

VOUCH = "reverie.vouch"
# Whether a request came through the trusted proxy.
BY_PROXY = "reverie.by_proxy"
# Returns the address at which the server accepted the connection of a request.
LOCAL_ADDRESS = "reverie.local_address"
# Whether a request came over the Unix socket.
BY_SOCKET = "reverie.by_socket"
TOO_LARGE = "reverie.too_large"


def vouch_for(environ: dict[str, Any]) -> None:
    """Mark the connection of a request as authenticated."""
    # Other servers, for example in tests, do not support this.
    if vouch := environ.get(VOUCH):
        vouch()


def is_too_large(environ: dict[str, Any]) -> bool:
    """Return whether the server did not read the request's body because it is too large."""
    return bool(environ.get(TOO_LARGE))


def listen(
    app: Wsgi,
    host: str,
    port: int,
    *,
    threads: int,
    files: int,
    max_body_bytes: int,
    proxy: str | None = None,
    local: socket.socket | None = None,
) -> Any:
    """Return a listening server that may open `files` files; raise OSError if it cannot listen.

    A `proxy` is trusted to forward its clients' addresses, and whether they use TLS. `local` is a bound Unix socket.
    """
    believed = {"trusted_proxy": proxy, "trusted_proxy_headers": {"x-forwarded-for", "x-forwarded-proto"}}
    adj = Adjustments(
        host=host,
        port=port,
        threads=threads,
        ident=None,
        max_request_body_size=max_body_bytes,
        max_request_header_size=MAX_HEADER_BYTES,
        clear_untrusted_proxy_headers=True,
        # `select` supports only 1,024 files.
        asyncore_use_poll=True,
        connection_limit=min(MOST_CONNECTIONS, files // FILES_EACH),
        cleanup_interval=LOOK_S,
        **(believed if proxy else {}),
    )
    sockets: dict[int, Any] = {}
    dispatcher = ThreadedTaskDispatcher()
    servers = [Server(app, sockets, dispatcher=dispatcher, adj=adj, sockinfo=socket_info) for socket_info in adj.listen]
    if local is not None:
        servers.append(LocalServer(app, sockets, _sock=local, dispatcher=dispatcher, adj=adj, bind_socket=False))
    dispatcher.set_thread_count(threads)
    if len(servers) == 1:
        return servers[0]
    addresses = [(server.effective_host, server.effective_port) for server in servers]
    return MultiSocketServer(sockets, adj, addresses, dispatcher, servers[0].log_info)


class Task(WSGITask):  # type: ignore[misc]  # waitress ships no types
    """A request whose application can mark the connection as authenticated."""

    def get_environment(self) -> dict[str, Any]:
        """Return the environment for the application."""
        environ: dict[str, Any] = super().get_environment()
        environ[VOUCH] = self.channel.vouch
        environ[BY_PROXY] = self.channel.is_proxy
        environ[LOCAL_ADDRESS] = self.channel.socket.getsockname
        environ[BY_SOCKET] = isinstance(self.channel.server, LocalServer)
        environ[TOO_LARGE] = self.request.is_too_large
        return environ


class Parser(HTTPRequestParser):  # type: ignore[misc]  # ditto
    """A parser that accepts only unambiguous requests."""

    error: Any
    is_too_large = False

    def received(self, data: bytes) -> int:
        """Read a part of a request. A request with a too large body is completed without the body."""
        consumed = int(super().received(data))
        if not isinstance(self.error, RequestEntityTooLarge):
            return consumed
        # The application answers, because only it checks the token.
        self.error, self.is_too_large, self.expect_continue = None, True, False
        self.headers["CONNECTION"] = "close"
        self.close()
        self.body_rcv = None
        # The remaining data is a part of the body, not another request.
        return len(data)

    def parse_header(self, header_plus: bytes) -> None:
        """Read the first line and the headers."""
        if b"\r\n " in header_plus or b"\r\n\t" in header_plus:
            raise ParsingError("a header uses several lines")
        super().parse_header(header_plus)
        if self.chunked and ("CONTENT_LENGTH" in self.headers or _encodings(header_plus) != [b"chunked"]):
            raise ParsingError("the length of the body is ambiguous")


def _encodings(header_plus: bytes) -> list[bytes]:
    lines = (line.partition(b":") for line in header_plus.lower().split(b"\r\n"))
    return [value.strip(b" \t") for name, _, value in lines if name == b"transfer-encoding"]


class Connection(HTTPChannel):  # type: ignore[misc]  # ditto
    """A connection that knows whether it is authenticated, and since when it is idle."""

    task_class = Task
    parser_class = Parser
    is_known = False
    close_when_flushed: bool
    # Whether the last request's body was too large, and how many bytes of it may still be read.
    was_too_large = False
    may_discard: int | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        # The system time may jump.
        self.waits_since = time.monotonic()
        super().__init__(*arguments, **options)
        # A proxy sends the requests of all clients, and limits their connections itself. Only programs of the data
        # directory's owner can open its socket.
        self.is_known = self.is_proxy or isinstance(self.server, LocalServer)

    @property
    def is_proxy(self) -> bool:
        """Return whether the trusted proxy is at the other end."""
        return bool(self.server.adj.trusted_proxy) and self.addr[0] == self.server.adj.trusted_proxy

    def vouch(self) -> None:
        """Mark the connection as authenticated."""
        self.is_known = True

    @property
    def is_at_rest(self) -> bool:
        """Return whether none of its requests is being answered."""
        return not self.requests

    def write_soon(self, data: Any) -> int:
        """Queue a part of an answer. The time to read it starts with its first byte."""
        if not self.total_outbufs_len:
            self.waits_since = time.monotonic()
        return int(super().write_soon(data))

    def send(self, data: bytes, do_close: bool = True) -> int:
        """Send as much as possible now. A client that keeps reading gets more time."""
        sent = int(super().send(data, do_close))
        if sent:
            self.waits_since = time.monotonic()
        return sent

    def received(self, data: bytes) -> bool:
        """Receive data. The time of a request starts with its first byte."""
        if self.may_discard is not None:
            self.may_discard -= len(data)
            if self.may_discard < 0:
                self.hang_up()
            return False
        if self.is_known and self.request is None:
            self.waits_since = time.monotonic()
        taken = bool(super().received(data))
        # Pipelined requests produce answers that the client may never read.
        if not self.is_known and len(self.requests) > 1:
            self.hang_up()
        return taken

    def service(self) -> None:
        """Answer one request."""
        self.was_too_large = self.requests[0].is_too_large
        super().service()
        self.waits_since = time.monotonic()

    def handle_write(self) -> None:
        """Send queued data. After the answer to a too large body, keep reading for a while before closing."""
        lingers = self.was_too_large and self.close_when_flushed
        if lingers:
            self.close_when_flushed = False
        super().handle_write()
        if not lingers or not self.connected:
            return
        if self.total_outbufs_len:
            self.close_when_flushed = True
            return
        self.may_discard = DISCARDED_BYTES if self.is_known else DISCARDED_OF_STRANGER_BYTES
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def is_overdue(self, now: float) -> bool:
        """Return whether it took too long to send a request, to read an answer, or was idle too long."""
        waited_s = now - self.waits_since
        if self.total_outbufs_len:
            return waited_s > STUCK_S
        if not self.is_at_rest:
            return False
        if not self.is_known:
            return waited_s > STRANGER_S
        return waited_s > (IDLE_S if self.request is None else REQUEST_S)

    def hang_up(self) -> None:
        """Let the loop close the connection in its next iteration, even if the client does not read."""
        self.will_close = True
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


class Server(TcpWSGIServer):  # type: ignore[misc]  # ditto
    """A server that keeps room for authenticated clients."""

    channel_class = Connection
    _rests_until = 0.0

    def readable(self) -> bool:
        """Return whether to accept connections."""
        return bool(super().readable()) and time.monotonic() >= self._rests_until

    def accept(self) -> Any:
        """Accept a connection. If no file is left, close another connection instead."""
        try:
            return super().accept()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            if not self._close_oldest(self._open_connections()):
                self._rests_until = time.monotonic() + REST_S
            return None

    def handle_accept(self) -> None:
        """Accept a connection, and close one if there are too many."""
        super().handle_accept()
        # If no connection is idle, waitress accepts none above its limit, which includes a few sockets of its own.
        most = self.adj.connection_limit - SPARE
        room = min(MOST_STRANGERS, most // 2)
        connections = self._open_connections()
        strangers = [connection for connection in connections if not connection.is_known]
        if len(strangers) > room:
            self._close_oldest(strangers)
        # Two separate limits, because every client starts unauthenticated and must find room.
        if len(connections) - len(strangers) > most - room:
            self._close_oldest([connection for connection in connections if connection.is_known])

    def maintenance(self, now: float) -> None:  # noqa: ARG002 - the system time may jump
        """Close overdue connections."""
        moment = time.monotonic()
        for connection in self._open_connections():
            if connection.is_overdue(moment):
                connection.hang_up()

    def _open_connections(self) -> list[Connection]:
        return [
            connection
            for connection in self._map.values()
            if isinstance(connection, Connection) and not connection.will_close
        ]

    def _close_oldest(self, connections: list[Connection]) -> bool:
        """Close the connection that is idle the longest, unauthenticated ones first; return whether there was one."""
        resting = [connection for connection in connections if connection.is_at_rest]
        if not resting:
            return False
        min(resting, key=lambda connection: (connection.is_known, connection.waits_since)).hang_up()
        return True


class LocalServer(Server):
    """The server at the Unix socket, for programs of this machine. Their requests look like those over loopback."""

    def getsockname(self) -> tuple[str, str]:
        """Return the host and port that applications see."""
        return LOCAL_PEER[0], str(LOCAL_PEER[1])

    def set_socket_options(self, conn: socket.socket) -> None:
        """Set nothing: the options are those of TCP."""

    def fix_addr(self, _addr: str) -> tuple[str, int]:
        """Return the address of a client, which has none."""
        return LOCAL_PEER

    def close(self) -> None:
        """Stop listening and remove the socket."""
        path = self.socket.getsockname()
        super().close()
        # A socket that stays is replaced at the next start.
        with suppress(OSError):
            Path(path).unlink()
