"""Idle connections of many databases, so many at most."""

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Hashable

from pipeline.store.driver import WriteConnection

# Each is two open files, and each database one more. So many serve every thread of a process on one database, or some
# ten databases in turn; and there are processes that may open no more than 256 files.
MOST_IDLE = 32


class ConnectionPool:
    """Keep the connections that nobody uses; the database that was used longest ago gives up all of its own first.

    All of its own, because SQLite closes no file of a database before its last connection.
    """

    def __init__(self, most: int = MOST_IDLE) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._count = 0
        self._idle: OrderedDict[Hashable, list[sqlite3.Connection]] = OrderedDict()

    def take(self, owner: Hashable, *, writes: bool) -> sqlite3.Connection | None:
        """Take the connection of a database that was used last, None if none that writes, or reads, is idle."""
        with self._lock:
            idle = self._idle.get(owner, [])
            for index in range(len(idle) - 1, -1, -1):
                connection = idle[index]
                if isinstance(connection, WriteConnection) is writes:
                    del idle[index]
                    self._count -= 1
                    return connection
        return None

    def give(self, owner: Hashable, connection: sqlite3.Connection) -> None:
        """Give back a connection, and close those that are too many."""
        surplus: list[sqlite3.Connection] = []
        with self._lock:
            self._idle.setdefault(owner, []).append(connection)
            self._idle.move_to_end(owner)
            self._count += 1
            while self._count > self._most:
                _, oldest = self._idle.popitem(last=False)
                self._count -= len(oldest)
                surplus += oldest
        _close(surplus)

    def close(self, owner: Hashable) -> None:
        """Close the idle connections of a database."""
        with self._lock:
            idle = self._idle.pop(owner, [])
            self._count -= len(idle)
        _close(idle)


def _close(connections: list[sqlite3.Connection]) -> None:
    for connection in connections:
        connection.close()
