"""The index of the turns of sessions: their words, their sessions and their speakers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.index.documents import TURNS
from pipeline.index.lexical import LexicalIndex
from pipeline.index.row_arrays import FIRST_CAPACITY, SessionNumbers
from pipeline.index.storage import SharedSegments
from pipeline.kernel.errors import StoreUnavailable
from pipeline.kernel.store import turns
from pipeline.kernel.store.turns import Role


class TurnSessions(SessionNumbers):
    """The session of each turn, and whether a person said it. Arrays are indexed by row number."""

    def __init__(self) -> None:
        super().__init__(turns.list_after)
        self.by_person = np.zeros(FIRST_CAPACITY, np.bool_)

    def _add(self, seq: int, session: str | None, role: str) -> int:
        self.by_person[seq] = role == Role.USER
        return super()._add(seq, session, role)

    def _grow(self, size: int) -> None:
        super()._grow(size)
        self.by_person = np.pad(self.by_person, (0, len(self._session_of) - len(self.by_person)))


@dataclass(frozen=True, slots=True)
class TurnIndex:
    """What a search over turns reads of a workspace besides its store."""

    lexical: LexicalIndex
    sessions: TurnSessions

    @classmethod
    def open(
        cls, folder: Path, shared: SharedSegments | None, on_lost: Callable[[StoreUnavailable], object]
    ) -> "TurnIndex":
        """Return the index; it reads nothing before the first search."""
        sessions = TurnSessions()
        return cls(LexicalIndex(folder, sessions, shared, on_lost, TURNS), sessions)
