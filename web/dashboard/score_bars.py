"""Bars of recall scores, and rank changes between two result lists."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.kernel.records.recall import Hit, Signals
from pipeline.recall.rank import FEATURES_OF_GROUP


@dataclass(frozen=True, slots=True)
class BarSegment:
    """Part of a bar for one group; `x` and `width` are percentages of the bar, `value` is a part of the score."""

    group: str
    value: float
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class BarScale:
    """Common scale of the bars of a page: largest sums below and above zero."""

    below: float
    above: float

    def place(self, value: float) -> float:
        """Return the position of a value in percent."""
        return 100 * (self.below + value) / (self.below + self.above)


@dataclass(frozen=True, slots=True)
class Move:
    """Ranks of a result in two lists; None if a list does not contain it."""

    before: int | None
    now: int | None

    @property
    def sign(self) -> str:
        """Return the change as a symbol."""
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
    """Return the contribution of each group to a score."""
    return {
        group: sum(signals.parts.get(feature.name, 0.0) for feature in features)
        for group, features in FEATURES_OF_GROUP.items()
    }


def scale_of(explained: Iterable[Signals]) -> BarScale:
    """Return the common scale of several bars."""
    sums = [totals(signals).values() for signals in explained]
    below = max((-sum(value for value in values if value < 0) for values in sums), default=0.0)
    above = max((sum(value for value in values if value > 0) for values in sums), default=0.0)
    return BarScale(below, above or 1.0)


def segments(signals: Signals, scale: BarScale) -> list[BarSegment]:
    """Return the parts of a bar, positive parts right of zero and negative parts left of it."""
    parts, right, left = [], 0.0, 0.0
    for group, value in totals(signals).items():
        start = right if value >= 0 else left + value
        right, left = (right + value, left) if value >= 0 else (right, left + value)
        if value:
            x = scale.place(start)
            parts.append(BarSegment(group, value, x, scale.place(start + abs(value)) - x))
    return parts


def moves(before: Sequence[Hit], now: Sequence[Hit]) -> dict[str, Move]:
    """Return the rank change of each memory in two lists by id."""
    old, new = ({hit.memory.id: rank for rank, hit in enumerate(hits, 1)} for hits in (before, now))
    return {identity: Move(old.get(identity), new.get(identity)) for identity in (*new, *old)}
