"""The HTTP server: waitress, with few, short connections for whoever has not shown that it may ask.

Anybody on this machine can open connections, and a hook must not wait behind them: those that were never let in are
the first to go when many are open, and none keeps its place by sending slowly or by reading nothing.
"""

import contextlib
import errno
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import MultiSocketServer, TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher, WSGITask
from waitress.utilities import RequestEntityTooLarge

# The most connections at once, and of them those that were never let in; fewer where few files may be open.
MOST_CONNECTIONS = 256
MOST_STRANGERS = 32
# Each may need a file for its socket, one for a long request and one for a long answer; the stores need theirs.
FILES_EACH = 4
# Of the places, those for waitress' own sockets, and for who comes while everybody else is being answered.
SPARE = 8
# How long a stranger may take for a request, or rest between two; who was let in may rest longer.
STRANGER_S = 10.0
REQUEST_S = 60.0
IDLE_S = 120.0
# An answer of which nothing was read for so long is read by nobody.
STUCK_S = 30.0
# The longest line and headers: a question of 4,000 letters in any script, and a cookie.
MAX_HEADER_BYTES = 64 * 1024
# How much of a body that is too large is read and discarded after the answer. A client that sends its body before it
# reads would see a reset connection instead of the answer; a stranger cannot make the server read more than this.
DISCARDED_BYTES, DISCARDED_OF_STRANGER_BYTES = 64 * 1024 * 1024, 256 * 1024
# How often overdue connections are looked for, and how long nobody is let in when no file is left.
LOOK_S = 1
REST_S = 0.2

# What PEP 3333 calls an application.
Wsgi = Callable[[dict[str, Any], Any], Iterable[bytes]]

VOUCH = "reverie.vouch"
# Whether a request came by the proxy that is believed.
BY_PROXY = "reverie.by_proxy"
# Returns the address at which the server accepted the connection of a request.
LOCAL_ADDRESS = "reverie.local_address"
TOO_LARGE = "reverie.too_large"


def vouch_for(environ: dict[str, Any]) -> None:
    """Note that the connection of a request is of somebody who may ask."""
    # Other servers, as in tests, know no such thing.
    if vouch := environ.get(VOUCH):
        vouch()


def is_too_large(environ: dict[str, Any]) -> bool:
    """Tell whether the server did not read the request's body because it is too large."""
    return bool(environ.get(TOO_LARGE))


def listen(
    app: Wsgi, host: str, port: int, *, threads: int, files: int, max_body_bytes: int, proxy: str | None = None
) -> Any:
    """Return a server that listens and may open that many files; raise OSError when it cannot listen.

    A `proxy` is believed what it says of its clients: their address, and whether they came by TLS.
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
        # Selecting ends with the 1,024th file.
        asyncore_use_poll=True,
        connection_limit=min(MOST_CONNECTIONS, files // FILES_EACH),
        cleanup_interval=LOOK_S,
        **(believed if proxy else {}),
    )
    sockets: dict[int, Any] = {}
    dispatcher = ThreadedTaskDispatcher()
    servers = [Server(app, sockets, dispatcher=dispatcher, adj=adj, sockinfo=one) for one in adj.listen]
    dispatcher.set_thread_count(threads)
    if len(servers) == 1:
        return servers[0]
    addresses = [(server.effective_host, server.effective_port) for server in servers]
    return MultiSocketServer(sockets, adj, addresses, dispatcher, servers[0].log_info)


class Task(WSGITask):  # type: ignore[misc]  # waitress ships no types
    """Let the application vouch for a connection."""

    def get_environment(self) -> dict[str, Any]:
        """Return what the application gets."""
        environ: dict[str, Any] = super().get_environment()
        environ[VOUCH] = self.channel.vouch
        environ[BY_PROXY] = self.channel.is_proxy
        environ[LOCAL_ADDRESS] = self.channel.socket.getsockname
        environ[TOO_LARGE] = self.request.is_too_large
        return environ


class Parser(HTTPRequestParser):  # type: ignore[misc]  # ditto
    """Read a request that can be read in one way only."""

    error: Any
    is_too_large = False

    def received(self, data: bytes) -> int:
        """Read a part of a request; one whose body is too large is completed without the body."""
        consumed = int(super().received(data))
        if not isinstance(self.error, RequestEntityTooLarge):
            return consumed
        # The application answers: only it knows whether the client has a token.
        self.error, self.is_too_large, self.expect_continue = None, True, False
        self.headers["CONNECTION"] = "close"
        self.close()
        self.body_rcv = None
        # The rest is a part of the body, not another request.
        return len(data)

    def parse_header(self, header_plus: bytes) -> None:
        """Read the first line and the headers."""
        if b"\r\n " in header_plus or b"\r\n\t" in header_plus:
            raise ParsingError("a header over several lines")
        super().parse_header(header_plus)
        if self.chunked and ("CONTENT_LENGTH" in self.headers or _encodings(header_plus) != [b"chunked"]):
            raise ParsingError("a length that is told in several ways")


def _encodings(header_plus: bytes) -> list[bytes]:
    lines = (line.partition(b":") for line in header_plus.lower().split(b"\r\n"))
    return [value.strip(b" \t") for name, _, value in lines if name == b"transfer-encoding"]


class Connection(HTTPChannel):  # type: ignore[misc]  # ditto
    """A connection that knows whether it was let in, and since when it waits for what comes next."""

    task_class = Task
    parser_class = Parser
    is_known = False
    close_when_flushed: bool
    # Whether the last request's body was too large; then how many bytes of it may still be read.
    was_too_large = False
    may_discard: int | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        # The clock on the wall may jump.
        self.waits_since = time.monotonic()
        super().__init__(*arguments, **options)
        # A proxy sends everybody's requests, and keeps strangers from each other's places itself.
        self.is_known = self.is_proxy

    @property
    def is_proxy(self) -> bool:
        """Tell whether the proxy that is believed is at the other end."""
        return bool(self.server.adj.trusted_proxy) and self.addr[0] == self.server.adj.trusted_proxy

    def vouch(self) -> None:
        """Note that a request was let in."""
        self.is_known = True

    @property
    def is_at_rest(self) -> bool:
        """Tell whether no request of it is being answered."""
        return not self.requests

    def write_soon(self, data: Any) -> int:
        """Take a part of an answer; the time to read it begins with its first byte."""
        if not self.total_outbufs_len:
            self.waits_since = time.monotonic()
        return int(super().write_soon(data))

    def send(self, data: bytes, do_close: bool = True) -> int:
        """Send what can be sent now; whoever reads on gets the time for it."""
        sent = int(super().send(data, do_close))
        if sent:
            self.waits_since = time.monotonic()
        return sent

    def received(self, data: bytes) -> bool:
        """Take what was sent; the time of a request begins with its first byte."""
        if self.may_discard is not None:
            self.may_discard -= len(data)
            if self.may_discard < 0:
                self.hang_up()
            return False
        if self.is_known and self.request is None:
            self.waits_since = time.monotonic()
        taken = bool(super().received(data))
        # Requests one behind the other are answers one behind the other, which need not be read.
        if not self.is_known and len(self.requests) > 1:
            self.hang_up()
        return taken

    def service(self) -> None:
        """Answer one request."""
        self.was_too_large = self.requests[0].is_too_large
        super().service()
        self.waits_since = time.monotonic()

    def handle_write(self) -> None:
        """Send what waits; after the answer to a body that is too large, read on for a while before closing."""
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
        """Tell whether it took its time to send a request, to read an answer, or without either."""
        waited_s = now - self.waits_since
        if self.total_outbufs_len:
            return waited_s > STUCK_S
        if not self.is_at_rest:
            return False
        if not self.is_known:
            return waited_s > STRANGER_S
        return waited_s > (IDLE_S if self.request is None else REQUEST_S)

    def hang_up(self) -> None:
        """Let the loop close the connection at its next turn, even where nobody reads."""
        self.will_close = True
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


class Server(TcpWSGIServer):  # type: ignore[misc]  # ditto
    """Keep room for those who may ask."""

    channel_class = Connection
    _rests_until = 0.0

    def readable(self) -> bool:
        """Tell whether to let somebody in."""
        return bool(super().readable()) and time.monotonic() >= self._rests_until

    def accept(self) -> Any:
        """Let somebody in; without a file for it, somebody else goes first."""
        try:
            return super().accept()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            if not self._close_oldest(self._open_connections()):
                self._rests_until = time.monotonic() + REST_S
            return None

    def handle_accept(self) -> None:
        """Let somebody in and whoever is one too many go."""
        super().handle_accept()
        # Where nobody rests, waitress lets nobody in above the limit, to which it counts a few sockets of its own.
        most = self.adj.connection_limit - SPARE
        room = min(MOST_STRANGERS, most // 2)
        connections = self._open_connections()
        strangers = [one for one in connections if not one.is_known]
        if len(strangers) > room:
            self._close_oldest(strangers)
        # Apart from each other: whoever may ask comes as a stranger, and finds room whoever else is there.
        if len(connections) - len(strangers) > most - room:
            self._close_oldest([one for one in connections if one.is_known])

    def maintenance(self, now: float) -> None:  # noqa: ARG002 - by the clock on the wall
        """Close what is overdue."""
        moment = time.monotonic()
        for connection in self._open_connections():
            if connection.is_overdue(moment):
                connection.hang_up()

    def _open_connections(self) -> list[Connection]:
        return [one for one in self._map.values() if isinstance(one, Connection) and not one.will_close]

    def _close_oldest(self, connections: list[Connection]) -> bool:
        """Close the connection that rests the longest, a stranger's before others; tell whether there was one."""
        resting = [one for one in connections if one.is_at_rest]
        if not resting:
            return False
        min(resting, key=lambda one: (one.is_known, one.waits_since)).hang_up()
        return True
