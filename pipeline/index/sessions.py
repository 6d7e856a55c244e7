"""The order of memories within their sessions, kept in memory and brought up to date from the store."""

import bisect
import threading
from collections.abc import Sequence
from sqlite3 import Connection

from pipeline.store import memories

PAGE = 20_000


class SessionMap:
    """Answer where a memory stands in its session, and what stands beside it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_seq = 0
        self._numbers: dict[str, int] = {}
        self._orders: list[list[tuple[str, int]]] = []
        self._memories: dict[int, tuple[int, str]] = {}

    def refresh(self, db: Connection) -> None:
        """Take in what was written since the last call."""
        with self._lock:
            while rows := memories.after(db, self._last_seq, PAGE):
                for seq, session, occurred_at in rows:
                    if session is not None:
                        self._add(seq, session, occurred_at)
                self._last_seq = rows[-1][0]

    def place(self, seq: int) -> tuple[int, int]:
        """Return (session number, position) of a memory; (-1, 0) for one without a session."""
        found = self._memories.get(seq)
        if found is None:
            return -1, 0
        session, occurred_at = found
        return session, bisect.bisect_left(self._orders[session], (occurred_at, seq))

    def neighbours(self, seqs: Sequence[int], reach: int) -> list[int]:
        """List the memories up to `reach` places before and after the given ones."""
        found: list[int] = []
        for seq in seqs:
            session, at = self.place(seq)
            if session >= 0:
                order = self._orders[session]
                found.extend(other for _, other in order[max(0, at - reach) : at + reach + 1])
        return found

    def _add(self, seq: int, session: str, occurred_at: str) -> None:
        number = self._numbers.setdefault(session, len(self._orders))
        if number == len(self._orders):
            self._orders.append([])
        bisect.insort(self._orders[number], (occurred_at, seq))
        self._memories[seq] = (number, occurred_at)
