"""A chart of growth: days, weeks, months or years, whichever fits the time that has passed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum

MOST_PERIODS = 62
# Comes after every moment as text.
END = ":"


class Unit(StrEnum):
    """How long a period is."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class Period:
    """What one period brought, and how much there was at its end."""

    label: str
    count: int
    total: int


@dataclass(frozen=True, slots=True)
class Growth:
    """The last periods up to the latest memory; `earlier` came before all of them."""

    unit: Unit
    earlier: int
    periods: tuple[Period, ...]

    @property
    def total(self) -> int:
        """Return how much there is."""
        return self.periods[-1].total

    @property
    def most(self) -> int:
        """Return the most that one period brought."""
        return max(period.count for period in self.periods)


def growth(first: date, last: date, count: Callable[[Sequence[str]], list[int]]) -> Growth:
    """Divide the time from the first to the last day; `count` tells how much lies between successive moments."""
    unit = _unit(first, last)
    starts = [_start(unit, last)]
    while starts[0] > first and len(starts) < MOST_PERIODS and starts[0] > date.min:
        starts.insert(0, _start(unit, starts[0] - timedelta(days=1)))
    earlier, *counts = count(["", *map(str, starts), END])
    periods, total = [], earlier
    for start, one in zip(starts, counts, strict=True):
        total += one
        periods.append(Period(_label(unit, start), one, total))
    return Growth(unit, earlier, tuple(periods))


def _unit(first: date, last: date) -> Unit:
    days = (last - first).days
    for unit, length in ((Unit.DAY, 1), (Unit.WEEK, 7), (Unit.MONTH, 30)):
        if days < (MOST_PERIODS - 1) * length:
            return unit
    return Unit.YEAR


def _start(unit: Unit, day: date) -> date:
    match unit:
        case Unit.DAY:
            return day
        case Unit.WEEK:
            return day - timedelta(days=day.weekday())
        case Unit.MONTH:
            return day.replace(day=1)
        case Unit.YEAR:
            return day.replace(month=1, day=1)


def _label(unit: Unit, start: date) -> str:
    match unit:
        case Unit.DAY:
            return str(start)
        case Unit.WEEK:
            return f"week of {start}"
        case Unit.MONTH:
            return str(start)[:7]
        case Unit.YEAR:
            return str(start)[:4]
