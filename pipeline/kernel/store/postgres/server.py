"""The server of the store for one process: its connections, and the check that it is suitable."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from sqlite3 import Connection
from typing import Any, cast

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pipeline.kernel.errors import ReverieError, StoreBusy, StoreUnavailable
from pipeline.kernel.store.database import HomeTables
from pipeline.kernel.store.postgres import schema
from pipeline.kernel.store.postgres.connection import PostgresConnection, Row, WatchedConnection, failure_of

OLDEST_VERSION = 150000
DEFAULT_PORT = "5432"
# Number of idle connections to keep; each thread uses at most two.
MOST_IDLE = 8
# The system's keepalive, not a request's timeout, distinguishes a dead server from a slow one.
CONNECT_S = 5
RECHECK_S = 0.2
_WAYS: dict[str, Any] = {
    "application_name": "reverie",
    "connect_timeout": str(CONNECT_S),
    # Among several hosts, the writable one: after a failover that is another one.
    "target_session_attrs": "read-write",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "tcp_user_timeout": "30000",
}
# Open transactions block migrations and the removal of old rows; an open write blocks a workspace.
_SET_UP = """
SET client_min_messages = warning; SET jit = off; SET TimeZone = 'UTC';
SET statement_timeout = '120s'; SET idle_in_transaction_session_timeout = '600s';
SELECT current_setting('server_version_num')::int8, current_setting('server_encoding') = 'UTF8',
rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user
"""


class Server(HomeTables):
    """The server at an address; connections are opened on demand, and some idle ones are kept.

    No library's pool: those wait for a dead server until their timeout, and this one fails at once.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._idle: list[PostgresConnection] = []
        # Host and port of the last connection.
        self._leader: tuple[str, str] | None = None
        self._is_closed = False

    @contextmanager
    def begun(self, script: str, *, of_workspace: bool = True) -> Iterator[tuple[PostgresConnection, Row]]:
        """Start a transaction by a script; yield its connection and the answer; roll back uncommitted changes."""
        connection, answer = self._begin(script, of_workspace)
        try:
            yield connection, answer
        finally:
            self._end(connection)

    def _begin(self, script: str, of_workspace: bool) -> tuple[PostgresConnection, Row]:
        """Return a connection with a started transaction, and the last statement's answer.

        Idle connections that were lost are replaced silently.
        """
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            try:
                answer = self._start(connection, script, of_workspace)
                if connection.is_writable:
                    return connection, answer
                self._end(connection)
            except StoreUnavailable:
                if not connection.is_lost:
                    raise
        connection = self._connect()
        return connection, self._start(connection, script, of_workspace)

    def _end(self, connection: PostgresConnection) -> None:
        with suppress(ReverieError):
            # The server rolls back a lost connection automatically.
            connection.roll_back()
        if not connection.is_writable:
            # The other idle connections are lost too: the server was restarted, hangs, or is no longer the primary.
            self._drop_idle()
        if connection.in_transaction or not connection.is_writable or self._is_closed:
            # A connection that could not end its transaction is useless.
            connection.close()
            return
        with self._lock:
            self._idle.append(connection)
            surplus = self._idle[:-MOST_IDLE]
            del self._idle[:-MOST_IDLE]
        for surplus_connection in surplus:
            surplus_connection.close()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Run a transaction on the data directory's tables outside of workspaces; roll back on any error."""
        with self.begun("BEGIN", of_workspace=False) as (home, _):
            yield cast("Connection", home)
            home.commit()

    read = write

    @contextmanager
    def alone(self, patience_s: float) -> Iterator[None]:
        """Exclude all other processes of the server from the exchange; raise StoreBusy if one is running."""
        end = time.monotonic() + patience_s
        # A separate connection, so that the lock is released however this process ends.
        connection = self._connect()
        try:
            while not connection.run_script("SELECT pg_try_advisory_lock(7077, 35)")[0]:
                if time.monotonic() > end:
                    raise StoreBusy("another exchange is still running")
                time.sleep(RECHECK_S)
            yield
        finally:
            connection.close()

    def close(self) -> None:
        """Close every connection; connections in use are closed afterwards."""
        self._is_closed = True
        self._drop_idle()

    def _start(self, connection: PostgresConnection, script: str, of_workspace: bool) -> Row:
        connection.of_workspace = of_workspace
        try:
            return connection.run_script(script)
        except BaseException:
            self._end(connection)
            raise

    def _drop_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _connect(self) -> PostgresConnection:
        try:
            made = WatchedConnection.connect(
                make_conninfo("", **_WAYS | _put_first(self._leader, conninfo_to_dict(self._url))),
                autocommit=True,
                cursor_factory=psycopg.ClientCursor,
            )
        except psycopg.Error as error:
            raise failure_of(error) from error
        _adapt_values(made.adapters)
        self._leader = made.info.host, str(made.info.port)
        connection = PostgresConnection(made)
        try:
            self._check(connection)
            schema.make_ready(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: PostgresConnection) -> None:
        version, is_unicode, passes_by = connection.run_script(_SET_UP)
        if version < OLDEST_VERSION:
            raise StoreUnavailable(f"PostgreSQL {version // 10000} is too old for a store: it must be 15 or later")
        if not is_unicode:
            raise StoreUnavailable(
                "the database's encoding is not UTF8, so it cannot store every text. Create another one: "
                "CREATE DATABASE reverie ENCODING 'UTF8' TEMPLATE template0"
            )
        if passes_by:
            raise StoreUnavailable(
                "the store's role is a superuser or passes row level security by, and would see every workspace in "
                "each: make one with CREATE ROLE reverie LOGIN, and give it the database"
            )


def _put_first(leader: tuple[str, str] | None, address: dict[str, Any]) -> dict[str, Any]:
    """Return an address with one of several hosts first: each unresponsive host before it costs CONNECT_S."""
    hosts, ports = (str(address.get(name, "")).split(",") for name in ("host", "port"))
    if len(hosts) == 1 or len(ports) not in (1, len(hosts)) or "hostaddr" in address:
        return address
    named = zip(hosts, ports if len(ports) > 1 else ports * len(hosts), strict=True)
    host, port = zip(
        *sorted(named, key=lambda address_part: (address_part[0], address_part[1] or DEFAULT_PORT) != leader),
        strict=True,
    )
    return address | {"host": ",".join(host), "port": ",".join(port)}


class _WholeNumber(Dumper):
    """An integer or a boolean, in 64 bits as in SQLite."""

    def dump(self, obj: int) -> bytes:
        return b"%d" % obj

    def quote(self, obj: int) -> bytes:
        return b"'%d'::int8" % obj


class _Number(Dumper):
    """A number, which would otherwise be a decimal."""

    def dump(self, obj: float) -> bytes:
        return repr(float(obj)).encode()

    def quote(self, obj: float) -> bytes:
        return b"'%b'::float8" % self.dump(obj)


class _DecimalFraction(Loader):
    """A sum of the server: an integer or a number."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


class _Truth(Loader):
    """A boolean."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


def _adapt_values(adapters: AdaptersMap) -> None:
    """Convert the values of a connection as with SQLite."""
    for kind in (int, bool):
        adapters.register_dumper(kind, _WholeNumber)
    adapters.register_dumper(float, _Number)
    adapters.register_loader("numeric", _DecimalFraction)
    adapters.register_loader("bool", _Truth)
