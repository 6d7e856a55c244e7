"""When an answer is due, and which steps were left out because it was."""

import time
from collections.abc import Callable

from pipeline.records.recall import ChannelReport, ChannelState, Step


class Deadline:
    """The moment at which an answer is due, counted from now, and the steps that were left out after it."""

    def __init__(self, budget_ms: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = clock()
        self.at = self._began + budget_ms / 1000
        self.late: dict[str, ChannelReport] = {}

    @property
    def for_channels(self) -> float:
        """Return until when the channels may run: at least half of the budget, however long opening a store took."""
        return max(self.at, self._clock() + (self.at - self._began) / 2)

    @property
    def remaining_s(self) -> float:
        """Return the seconds left, 0 when it has passed."""
        return max(0.0, self.at - self._clock())

    def leaves_out(self, step: Step) -> bool:
        """Return whether a step must be left out because the answer is due; note that it was."""
        if self._clock() < self.at:
            return False
        took_ms = round((self._clock() - self._began) * 1000, 2)
        self.late.setdefault(step, ChannelReport(ChannelState.LATE, took_ms))
        return True
