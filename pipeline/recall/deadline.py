"""The deadline of an answer, the steps that were left out because of it, and the measured cost of optional steps."""

import time
from collections.abc import Callable

from pipeline.kernel.records.recall import ChannelReport, ChannelState, Step

# The share of the time left that an optional step may take: the rest is for the steps after it.
OPTIONAL_SHARE = 0.75
# RFC 6298 estimates the round trips of TCP with these weights; the estimate is four mean deviations above the mean.
NEW_MEAN, NEW_DEVIATION, DEVIATIONS = 1 / 8, 1 / 4, 4
# After a step was left out because of its cost, its estimate shrinks: one slow run does not rule it out forever.
SHRINKING = 0.95


class StepCosts:
    """Running estimates of the time that each optional step takes in this process."""

    def __init__(self) -> None:
        self._measured: dict[Step, tuple[float, float]] = {}

    def estimate_ms(self, step: Step, prior_ms: float) -> float:
        """Return the estimate for a step, `prior_ms` before its first run."""
        if step not in self._measured:
            return prior_ms
        mean, deviation = self._measured[step]
        return mean + DEVIATIONS * deviation

    def record(self, step: Step, took_ms: float) -> None:
        """Add a measurement."""
        mean, deviation = self._measured.get(step, (took_ms, took_ms / (2 * DEVIATIONS)))
        deviation += NEW_DEVIATION * (abs(took_ms - mean) - deviation)
        self._measured[step] = mean + NEW_MEAN * (took_ms - mean), deviation

    def shrink(self, step: Step) -> None:
        """Lower the estimate for a step that was left out because of it."""
        if step in self._measured:
            mean, deviation = self._measured[step]
            self._measured[step] = SHRINKING * mean, SHRINKING * deviation


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

    @property
    def elapsed_ms(self) -> float:
        """Return the milliseconds since the start."""
        return round((self._clock() - self._began) * 1000, 2)

    def allows(self, cost_ms: float) -> bool:
        """Return whether an optional step of this cost leaves enough time for the steps after it."""
        return cost_ms <= OPTIONAL_SHARE * 1000 * self.remaining_s

    def must_skip(self, step: Step) -> bool:
        """Return whether a step must be left out because of the deadline; record it."""
        if self._clock() < self.at:
            return False
        self.late.setdefault(step, ChannelReport(ChannelState.LATE, self.elapsed_ms))
        return True
