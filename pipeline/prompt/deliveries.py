"""Events that a host delivers twice, because hooks for the user, for the project and of a plugin all run."""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pipeline.kernel.errors import StoreUnavailable

T = TypeVar("T")

# A host runs all hooks of an event at once. An event without an id may be repeated on purpose soon afterwards.
WITH_ID_S, WITHOUT_ID_S = 60.0, 2.0
# Maximum number of recent events to remember.
MOST_RECENT = 500
# What identifies one event of a session: Claude Code and Codex name calls and prompts, Gemini CLI sends the time. The
# call comes first.
IDS = ("tool_use_id", "prompt_id", "timestamp")
# Less than a hook's client waits for its answer.
ANSWER_WAIT_S = 0.8
BEFORE_TOOL = "PreToolUse"


@dataclass(frozen=True, slots=True)
class _Delivery(Generic[T]):
    """A delivered event and its answer, as soon as there is one."""

    session: tuple[str, ...]
    name: str
    call_id: str
    has_id: bool
    digest: bytes
    at: float
    answer: "Future[T]" = field(default_factory=Future)

    def is_over(self, now: float) -> bool:
        """Return whether a repetition would be a new event by now."""
        if self.has_id:
            return now - self.at > WITH_ID_S
        # An agent may repeat a refused call at once.
        if self.name == BEFORE_TOOL:
            return self.answer.done()
        return now - self.at > WITHOUT_ID_S

    def is_before(self, other: "_Delivery[T]") -> bool:
        """Return whether another event of the session shows that this one is over: hosts wait for all of its hooks.

        Tool calls with ids may run in parallel.
        """
        is_beside = "" not in (self.call_id, other.call_id) and self.call_id != other.call_id
        return self.session == other.session and self.digest != other.digest and not is_beside


class HookDeliveries(Generic[T]):
    """Handle each event once, even if a host delivers it several times."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recent: list[_Delivery[T]] = []

    def answer(
        self,
        session: tuple[str, ...],
        name: str,
        event: Mapping[str, Any],
        handle: Callable[[], T],
        repeat: Callable[[T | None], T],
    ) -> T:
        """Return the answer of `handle`; for a repeated event, the result of `repeat` for that answer.

        `repeat` gets None if the first answer is late or failed.
        """
        call_id, *others = (str(event.get(key) or "") for key in IDS)
        digest = hashlib.blake2b(json.dumps([name, event], sort_keys=True).encode(), digest_size=16).digest()
        delivery: _Delivery[T] = _Delivery(session, name, call_id, any((call_id, *others)), digest, time.monotonic())
        first = self._find_first(delivery)
        if first is not None:
            answer: T | None = None
            with suppress(TimeoutError, _Unanswered):
                answer = first.answer.result(ANSWER_WAIT_S)
            return repeat(answer)
        try:
            delivery.answer.set_result(handle())
        except BaseException as error:
            if isinstance(error, StoreUnavailable):
                # A later delivery, such as that of the spool, may still succeed.
                self._forget(delivery)
            delivery.answer.set_exception(_Unanswered())
            raise
        return delivery.answer.result()

    def _forget(self, delivery: _Delivery[T]) -> None:
        with self._lock:
            self._recent = [other for other in self._recent if other is not delivery]

    def _find_first(self, delivery: _Delivery[T]) -> _Delivery[T] | None:
        """Return the first delivery of the same event, None if this is the first."""
        with self._lock:
            recent = [
                earlier for earlier in self._recent if not (earlier.is_over(delivery.at) or earlier.is_before(delivery))
            ]
            self._recent = recent[-MOST_RECENT:]
            first = next(
                (
                    earlier
                    for earlier in self._recent
                    if (earlier.session, earlier.digest) == (delivery.session, delivery.digest)
                ),
                None,
            )
            if first is None:
                self._recent.append(delivery)
            return first


class _Unanswered(Exception):
    """The first delivery of an event has no answer."""
