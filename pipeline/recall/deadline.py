"""The deadline of an answer, and the steps that were left out because of it."""

import time
from collections.abc import Callable

from pipeline.records.recall import ChannelReport, ChannelState, Step


class Deadline:
    """A deadline, counted from now, and the steps that were left out after it."""

    def __init__(self, budget_ms: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = clock()
        self.at = self._began + budget_ms / 1000
        self.late: dict[str, ChannelReport] = {}

    @property
    def channel_deadline(self) -> float:
        """Return the deadline of the channels: at least half of the budget, even if opening a store was slow."""
        return max(self.at, self._clock() + (self.at - self._began) / 2)

    @property
    def remaining_s(self) -> float:
        """Return the seconds left, 0 after the deadline."""
        return max(0.0, self.at - self._clock())

    def must_skip(self, step: Step) -> bool:
        """Return whether a step must be left out because of the deadline; record it."""
        if self._clock() < self.at:
            return False
        took_ms = round((self._clock() - self._began) * 1000, 2)
        self.late.setdefault(step, ChannelReport(ChannelState.LATE, took_ms))
        return True
