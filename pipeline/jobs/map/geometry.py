"""Calculations for the map's placement: close pairs of points, sums over ties, and lengths of fast transforms."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from pipeline.jobs.map.graph import Ids, Numbers


@dataclass(frozen=True, slots=True)
class Ties:
    """Weighted ties between points, each in both directions."""

    first: Ids
    second: Ids
    weight: Numbers
    size: int

    @classmethod
    def between(cls, low: Ids, high: Ids, weight: Numbers, size: int) -> Self:
        """Return ties for pairs that are listed once."""
        ends = np.concatenate((low, high)), np.concatenate((high, low))
        return cls(*ends, np.concatenate((weight, weight)), size)

    def totals(self) -> Numbers:
        """Return the weight of each point's ties; shape (size,)."""
        totals: Numbers = np.bincount(self.first, self.weight, self.size).astype(np.float64)
        return totals

    def sum_over(self, spots: Numbers) -> Numbers:
        """Return the weighted sum of the coordinates of each point's neighbors; shape (size, 2)."""
        weighted = (self.weight * spots[self.second, axis] for axis in (0, 1))
        return np.column_stack([np.bincount(self.first, values, self.size) for values in weighted])


def find_close_pairs(points: Numbers, reach: float) -> tuple[Ids, Ids]:
    """Return all pairs of points within a distance, each once, and some that are up to three times as far apart."""
    cell = np.floor(points / reach).astype(np.int64)
    cell -= cell.min(axis=0, initial=np.iinfo(np.int64).max)
    # Two spare columns separate the ends of rows.
    columns = int(cell[:, 0].max(initial=0)) + 3
    number = cell[:, 1] * columns + cell[:, 0]
    order = np.argsort(number, kind="stable")
    number = number[order]
    place = np.arange(len(points))
    firsts, seconds = [], []
    # A cell with itself and with the half of its neighbors that come after it.
    for offset in (0, 1, columns - 1, columns, columns + 1):
        start = place + 1 if offset == 0 else np.searchsorted(number, number + offset, "left")
        count = np.searchsorted(number, number + offset, "right") - start
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        firsts.append(order[np.repeat(place, count)])
        seconds.append(order[np.repeat(start, count) + within])
    return np.concatenate(firsts), np.concatenate(seconds)


def find_fast_length(least: int) -> int:
    """Return the smallest even length from `least` on whose Fourier transform is fast: a product of 2, 3 and 5."""
    length = least + least % 2
    while not _is_fast(length):
        length += 2
    return length


def _is_fast(length: int) -> bool:
    for factor in (2, 3, 5):
        while length % factor == 0:
            length //= factor
    return length == 1
