"""Idle connections of many databases, up to a maximum."""

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Hashable

from pipeline.kernel.store.database import WriteConnection

# Each connection has two open files, and each database one more. This many serve every thread of a process on one
# database, or about ten databases in turn; some processes may not open more than 256 files.
MOST_IDLE = 32


class ConnectionPool:
    """Idle connections; the least recently used database gives up all of its connections first.

    All of them, because SQLite closes a database's files only after its last connection.
    """

    def __init__(self, most: int = MOST_IDLE) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._count = 0
        self._idle: OrderedDict[Hashable, list[sqlite3.Connection]] = OrderedDict()

    def take(self, owner: Hashable, *, writes: bool) -> sqlite3.Connection | None:
        """Return a database's most recently used idle connection for writing or reading, None if there is none."""
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
        """Return a connection to the pool, and close excess connections."""
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
