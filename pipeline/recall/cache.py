"""Answers that are still true: kept by the state of the workspace that they were computed from.

A key names everything that an answer depends on, so a write makes every older answer unreachable at once; nothing
has to be cleared. Whoever asks what is being computed already waits for that computation.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future

from pipeline.records.recall import Answer

KEPT = 256


class AnswerCache:
    """Compute each answer once; keep those that are whole."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Answer] = OrderedDict()
        self._running: dict[Hashable, Future[Answer]] = {}

    def get(self, key: Hashable, compute: Callable[[], Answer], timeout_s: float) -> Answer:
        """Return the answer for a key; one that another thread computes is awaited for so long, then computed."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            running = self._running.get(key)
            if running is None:
                mine: Future[Answer] = Future()
                self._running[key] = mine
        if running is None:
            return self._compute(key, compute, mine)
        try:
            return running.result(timeout=timeout_s)
        except Exception:  # noqa: BLE001 - whatever befell the other thread, this one computes for itself
            return compute()

    def _compute(self, key: Hashable, compute: Callable[[], Answer], mine: "Future[Answer]") -> Answer:
        try:
            answer = compute()
        except BaseException as error:
            with self._lock:
                del self._running[key]
            mine.set_exception(error)
            raise
        with self._lock:
            del self._running[key]
            if answer.settled and not answer.degraded:
                self._kept[key] = answer
                if len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        mine.set_result(answer)
        return answer
