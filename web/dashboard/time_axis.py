"""A time axis: positions of times in percent, and labels."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pipeline.kernel.times import parse

# Margins before the first and after the last time, as shares of the span.
ROOM_BEFORE, ROOM_AFTER = 0.02, 0.08
MOST_MARKS = 7
LEAST_S = 60.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC) + timedelta(hours=23.9)
_DAY_S = 86_400
_STEPS_S = (60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, _DAY_S, 2 * _DAY_S, 7 * _DAY_S)
_STEPS_MONTHS = (1, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000, 12_000, 24_000)
_MONTH_S = 30.44 * _DAY_S


@dataclass(frozen=True, slots=True)
class AxisMark:
    """A labelled time below the axis."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """A time span in seconds since 1970 (negative before)."""

    start: float
    end: float

    def position(self, moment: str | datetime) -> float:
        """Return the position of a time, limited to 0 to 100."""
        share = (_seconds(moment) - self.start) / (self.end - self.start)
        return round(100 * min(max(share, 0.0), 1.0), 3)

    def stretch(self, since: str | datetime, until: str | datetime | None) -> tuple[float, float]:
        """Return position and width of a span; without an end, it reaches the right edge."""
        x = self.position(since)
        return x, round((100.0 if until is None else self.position(until)) - x, 3)

    def marks(self) -> list[AxisMark]:
        """Return the labels at round times."""
        marks = self._by_months() if (self.end - self.start) / MOST_MARKS > _STEPS_S[-1] else self._by_seconds()
        return [AxisMark(round(100 * (at - self.start) / (self.end - self.start), 3), text) for at, text in marks]

    def _by_seconds(self) -> Iterator[tuple[float, str]]:
        step = next(step for step in _STEPS_S if (self.end - self.start) / step <= MOST_MARKS)
        at = (self.start // step + 1) * step
        while at <= self.end:
            moment = _EPOCH + timedelta(seconds=at)
            yield at, f"{moment.day} {moment:%b %Y}" if step >= _DAY_S else f"{moment.day} {moment:%b %H:%M}"
            at += step

    def _by_months(self) -> Iterator[tuple[float, str]]:
        step = next(step for step in _STEPS_MONTHS if (self.end - self.start) / (step * _MONTH_S) <= MOST_MARKS)
        first, last = (_EPOCH + timedelta(seconds=at) for at in (self.start, self.end))
        number = ((first.year * 12 + first.month - 1) // step + 1) * step
        while number <= last.year * 12 + last.month - 1:
            moment = datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)
            yield _seconds(moment), f"{moment.year}" if step >= 12 else f"{moment:%b} {moment.year}"
            number += step


def axis_over(moments: Iterable[str | datetime]) -> TimeAxis:
    """Return an axis over one or more times, with margins at both ends."""
    known = [_seconds(moment) for moment in moments]
    first, last = min(known), max(known)
    before, after = (max((last - first) * room, LEAST_S) for room in (ROOM_BEFORE, ROOM_AFTER))
    return TimeAxis(max(first - before, _seconds(_FIRST)), min(last + after, _seconds(_LAST)))


def _seconds(moment: str | datetime) -> float:
    known = parse(moment) if isinstance(moment, str) else moment
    return (known.replace(tzinfo=UTC) - _EPOCH).total_seconds()
