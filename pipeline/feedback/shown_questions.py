"""The questions for which memories were shown in the last hour, in memory only."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import NamedTuple

# A memory that is opened later was not opened because of the question.
SHOWN_FOR_S = 3600.0
MAX_SHOWN = 4096
MAX_CHARS = 1000


class Shown(NamedTuple):
    """A memory as it was shown to a person of a workspace; None is the owner of the data directory."""

    workspace_id: str
    person: str | None
    memory_seq: int


class ShownQuestions:
    """Remember, from any thread, the last question for which each memory was shown."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._questions: OrderedDict[Shown, tuple[str, float]] = OrderedDict()

    def note(self, workspace_id: str, person: str | None, seqs: Iterable[int], question: str) -> None:
        """Note that memories were shown for a question; long questions are about many things, and are ignored."""
        if not question or len(question) > MAX_CHARS:
            return
        now = self._clock()
        with self._lock:
            for seq in seqs:
                shown = Shown(workspace_id, person, seq)
                self._questions[shown] = question, now
                self._questions.move_to_end(shown)
            while len(self._questions) > MAX_SHOWN:
                self._questions.popitem(last=False)

    def find(self, workspace_id: str, person: str | None, seq: int) -> str | None:
        """Return the last question for which a memory was shown to a person in the last hour."""
        with self._lock:
            question, at = self._questions.get(Shown(workspace_id, person, seq), ("", 0.0))
        return question if question and self._clock() - at <= SHOWN_FOR_S else None

    def clear(self) -> None:
        """Forget every question."""
        with self._lock:
            self._questions.clear()
