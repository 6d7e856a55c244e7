"""The order of memories within their sessions, kept in memory and brought up to date from the store."""

import bisect
import threading
from sqlite3 import Connection

from pipeline.store import memories

PAGE = 20_000


class SessionMap:
    """Answer which memories stand beside a memory in its session."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_seq = 0
        self._place: dict[int, tuple[str, str]] = {}
        self._sessions: dict[str, list[tuple[str, int]]] = {}

    def refresh(self, db: Connection) -> None:
        """Take in what was written since the last call."""
        with self._lock:
            while rows := memories.after(db, self._last_seq, PAGE):
                for seq, session, occurred_at in rows:
                    if session is not None:
                        self._place[seq] = (session, occurred_at)
                        bisect.insort(self._sessions.setdefault(session, []), (occurred_at, seq))
                self._last_seq = rows[-1][0]

    def neighbours(self, seq: int, reach: int) -> list[tuple[int, int]]:
        """Return (row number, distance) of the memories up to `reach` places before and after."""
        place = self._place.get(seq)
        if place is None:
            return []
        session, occurred_at = place
        order = self._sessions[session]
        at = bisect.bisect_left(order, (occurred_at, seq))
        window = range(max(0, at - reach), min(len(order), at + reach + 1))
        return [(order[i][1], abs(i - at)) for i in window if i != at]
