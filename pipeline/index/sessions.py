"""The order of memories within their sessions, kept in memory and brought up to date from the store."""

import bisect
import threading
from sqlite3 import Connection

import numpy as np
from numpy.typing import NDArray

from pipeline.index.rows import Seqs, values_at
from pipeline.store import memories

PAGE = 20_000
FIRST_CAPACITY = 1024
# The session of row numbers that no memory has.
NOBODY = 0


class SessionMap:
    """Answer which session a memory belongs to, and what stands beside it.

    A memory without a session is a session of its own. Arrays are indexed by row number.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_seq = 0
        self._count = 1
        self._numbers: dict[str, int] = {}
        self._orders: dict[int, list[tuple[str, int]]] = {}
        self._session_of = np.zeros(FIRST_CAPACITY, np.int32)
        self._before = np.zeros(FIRST_CAPACITY, np.int64)
        self._after = np.zeros(FIRST_CAPACITY, np.int64)

    def refresh(self, db: Connection) -> None:
        """Take in what was written since the last call."""
        with self._lock:
            while rows := memories.after(db, self._last_seq, PAGE):
                self._grow(rows[-1][0] + 1)
                for seq, session, occurred_at in rows:
                    self._add(seq, session, occurred_at)
                self._last_seq = rows[-1][0]

    def numbers(self) -> tuple[NDArray[np.int32], int]:
        """Return the session number of every row number so far, and how many sessions there are."""
        with self._lock:
            return self._session_of[: self._last_seq + 1], self._count

    def sessions(self, seqs: Seqs) -> NDArray[np.int32]:
        """Return the session numbers of memories."""
        return values_at(self._session_of, seqs)

    def before(self, seqs: Seqs) -> Seqs:
        """Return the memories that come right before the given ones in their sessions, 0 for none."""
        return values_at(self._before, seqs)

    def after(self, seqs: Seqs) -> Seqs:
        """Return the memories that come right after the given ones in their sessions, 0 for none."""
        return values_at(self._after, seqs)

    def around(self, seqs: Seqs) -> Seqs:
        """Return the memories up to two places away from the given ones."""
        before, after = self.before(seqs), self.after(seqs)
        return np.concatenate((before, after, self.before(before), self.after(after)))

    def _add(self, seq: int, session: str | None, occurred_at: str) -> None:
        if session is None:
            number, self._count = self._count, self._count + 1
        else:
            number = self._numbers.setdefault(session, self._count)
            self._count = max(self._count, number + 1)
            self._link(self._orders.setdefault(number, []), seq, occurred_at)
        self._session_of[seq] = number

    def _link(self, order: list[tuple[str, int]], seq: int, occurred_at: str) -> None:
        at = bisect.bisect(order, (occurred_at, seq))
        before = order[at - 1][1] if at else 0
        after = order[at][1] if at < len(order) else 0
        order.insert(at, (occurred_at, seq))
        self._before[seq], self._after[seq] = before, after
        if before:
            self._after[before] = seq
        if after:
            self._before[after] = seq

    def _grow(self, size: int) -> None:
        if size > len(self._session_of):
            more = max(size, 2 * len(self._session_of)) - len(self._session_of)
            self._session_of = np.pad(self._session_of, (0, more))
            self._before = np.pad(self._before, (0, more))
            self._after = np.pad(self._after, (0, more))
