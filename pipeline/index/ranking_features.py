"""What ranks a memory beside its relevance, held in memory by row number and brought up to date from the change log."""

import threading
from sqlite3 import Connection

import numpy as np
from numpy.typing import NDArray

from pipeline.records import Kind
from pipeline.store import changes, memories

FIRST_CAPACITY = 1024


class RankingFeatures:
    """Answer whether memories may be shown to anyone in the workspace, and how important, old and repeated they are.

    Arrays are indexed by row number. A front may be a moment behind: what is shown is checked against the store.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generation = -1
        self.visible = np.zeros(FIRST_CAPACITY, np.bool_)
        self.importance = np.zeros(FIRST_CAPACITY, np.float32)
        self.days: NDArray[np.float64] = np.zeros(FIRST_CAPACITY, np.float64)
        self.keyed = np.zeros(FIRST_CAPACITY, np.bool_)
        self.repeats = np.zeros(FIRST_CAPACITY, np.float32)

    def refresh(self, db: Connection) -> None:
        """Take in what was written or changed since the last call."""
        generation = changes.generation(db)
        if generation <= self._generation:
            return
        with self._lock:
            if generation <= self._generation:
                return
            # A purged memory left no row that says which one it was.
            purged = changes.has_logged(db, changes.PURGE, self._generation)
            rows = memories.standings(db, -1 if purged else self._generation)
            self._grow(max((row.seq for row in rows), default=0) + 1)
            seqs = np.fromiter((row.seq for row in rows), np.int64, len(rows))
            visible = np.zeros_like(self.visible) if purged else self.visible
            visible[seqs] = [row.visible for row in rows]
            self.visible = visible
            self.importance[seqs] = [row.importance for row in rows]
            self.days[seqs] = [row.days for row in rows]
            self.keyed[seqs] = [row.kind == Kind.KEYED_FACT for row in rows]
            self.repeats[seqs] = [row.repeats for row in rows]
            self._generation = generation

    def _grow(self, size: int) -> None:
        more = max(size, 2 * len(self.visible)) - len(self.visible)
        if size <= len(self.visible):
            return
        self.visible, self.keyed = np.pad(self.visible, (0, more)), np.pad(self.keyed, (0, more))
        self.importance, self.repeats = np.pad(self.importance, (0, more)), np.pad(self.repeats, (0, more))
        self.days = np.pad(self.days, (0, more))
