"""Recall's results as bars, and how two orders of them differ."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.records.recall import Hit, Signals
from pipeline.services.recall import FEATURES_OF_GROUP


@dataclass(frozen=True, slots=True)
class BarSegment:
    """A group's stretch of a bar; `x` and `width` are per cent of the bar, `value` its share of the score."""

    group: str
    value: float
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class BarScale:
    """What the bars of one page have in common: how far the worst reaches below zero, and the best above."""

    below: float
    above: float

    def place(self, value: float) -> float:
        """Return where a value stands, in per cent."""
        return 100 * (self.below + value) / (self.below + self.above)


@dataclass(frozen=True, slots=True)
class Move:
    """What became of a result's rank from one list to another; no rank is no place in that list."""

    before: int | None
    now: int | None

    @property
    def sign(self) -> str:
        """Return the change in signs."""
        if self.now is None:
            return "gone"
        if self.before is None:
            return "new"
        rise = self.before - self.now
        return "=" if not rise else f"{'↑' if rise > 0 else '↓'}{abs(rise)}"

    @property
    def words(self) -> str:
        """Return the change in words."""
        if self.now is None:
            return f"rank {self.before} in the other list, missing here"
        if self.before is None:
            return "not in the other list"
        rise = self.before - self.now
        return "same rank" if not rise else f"{abs(rise)} {'up' if rise > 0 else 'down'}, from rank {self.before}"


def totals(signals: Signals) -> dict[str, float]:
    """Return what each group adds to a score, or takes from it."""
    return {
        group: sum(signals.parts.get(feature.name, 0.0) for feature in features)
        for group, features in FEATURES_OF_GROUP.items()
    }


def scale_of(explained: Iterable[Signals]) -> BarScale:
    """Return the scale on which bars can be compared."""
    sums = [totals(signals).values() for signals in explained]
    below = max((-sum(value for value in values if value < 0) for values in sums), default=0.0)
    above = max((sum(value for value in values if value > 0) for values in sums), default=0.0)
    return BarScale(below, above or 1.0)


def segments(signals: Signals, scale: BarScale) -> list[BarSegment]:
    """Return the bar of a score: what adds to it to the right of zero, what takes from it to the left."""
    found, right, left = [], 0.0, 0.0
    for group, value in totals(signals).items():
        start = right if value >= 0 else left + value
        right, left = (right + value, left) if value >= 0 else (right, left + value)
        if value:
            x = scale.place(start)
            found.append(BarSegment(group, value, x, scale.place(start + abs(value)) - x))
    return found


def moves(before: Sequence[Hit], now: Sequence[Hit]) -> dict[str, Move]:
    """Return how the rank of each memory of two lists changed, by id."""
    was, stands = ({hit.memory.id: rank for rank, hit in enumerate(hits, 1)} for hits in (before, now))
    return {identity: Move(was.get(identity), stands.get(identity)) for identity in (*stands, *was)}
