"""Touches: how often memories were recalled, counted in memory and written together every few seconds.

A crash loses the counts of the last seconds. That is accepted: they weigh what fades, and an acknowledged memory is
never among what is lost.
"""

import threading
from collections.abc import Iterable, Mapping

from pipeline.store import fading
from pipeline.store.database import Database

# Memories that wait to be counted; beyond them only those that wait already are. So many take a front's writes some
# 20 ms once in a while, and agents recall far fewer in five seconds.
MOST = 1024


class TouchBuffer:
    """Count recalls by row number, from any thread, until somebody takes the counts."""

    def __init__(self, most: int = MOST) -> None:
        self._lock = threading.Lock()
        self._most = most
        self._counts: dict[int, int] = {}

    def note(self, seqs: Iterable[int]) -> None:
        """Count one recall of each memory."""
        with self._lock:
            for seq in seqs:
                self._add(seq, 1)

    def take(self) -> Mapping[int, int]:
        """Return the counts and begin anew."""
        with self._lock:
            counts, self._counts = self._counts, {}
        return counts

    def put_back(self, counts: Mapping[int, int]) -> None:
        """Count again what was taken and could not be written."""
        with self._lock:
            for seq, count in counts.items():
                self._add(seq, count)

    def _add(self, seq: int, count: int) -> None:
        if seq in self._counts:
            self._counts[seq] += count
        elif len(self._counts) < self._most:
            self._counts[seq] = count


def write_touches(database: Database, counts: Mapping[int, int], at: str) -> int:
    """Write taken counts in one transaction; return how many memories were touched.

    Nothing enters the change log: a touch changes no answer before the next night.
    """
    if not counts:
        return 0
    with database.write() as db:
        return fading.touch(db, counts, at)
