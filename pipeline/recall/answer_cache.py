"""Answers of a workspace, each computed once for a state of the store."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future

from pipeline.kernel.records.recall import Answer

KEPT = 256


class AnswerCache:
    """Compute each answer once; cache complete answers by the state of the workspace.

    A key contains everything that an answer depends on, so a write makes older answers unreachable, and nothing must
    be cleared. Concurrent callers wait for the same computation.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Answer] = OrderedDict()
        self._running: dict[Hashable, Future[Answer]] = {}

    def get(self, key: Hashable, compute: Callable[[], Answer], timeout_s: float) -> Answer:
        """Return the answer for a key; wait up to `timeout_s` for another thread's computation, then compute it."""
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
        except Exception:  # noqa: BLE001 - if the other thread failed, this one computes the answer itself
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
