"""Where communities stand on the map: as discs that keep clear of each other, tied ones close together."""

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from pipeline.jobs.map.graph import Ids, Numbers

ROUNDS = 300
SETTLING = 200
PULL, GRAVITY, LOYALTY, DRIFT = 0.25, 0.03, 0.3, 0.05
# How far discs keep apart, in parts of their mean radius.
SHORE = 0.25
GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
# Whoever is pushed by several at once gives way to all of them, but not by the whole sum.
YIELDING = 0.7


def islands(radius: Numbers, ties: Numbers, start: Numbers, pausing: Callable[[], bool]) -> Numbers | None:
    """Return the centres of discs; None when asked to pause.

    `ties` tells how strongly each two are tied, `start` where they stood before, with NaN for those that are new.
    """
    known = ~np.isnan(start[:, 0])
    centre = np.where(known[:, None], start, _sunflower(len(radius)) * 2 * np.median(radius))
    pull = sparse.csr_matrix(ties / max(ties.sum(axis=1).max(), 1e-9))
    whole = np.asarray(pull.sum(axis=1)).reshape(-1, 1)
    gap = SHORE * radius.mean()
    for step in range(ROUNDS):
        if pausing():
            return None
        heat = 1 - step / ROUNDS
        drift = (pull @ centre - whole * centre) * PULL - centre * GRAVITY
        # Those that were there hardly move, but do close the gaps that others leave.
        home = (start - centre) * LOYALTY + drift * DRIFT
        centre = centre + np.where(known[:, None], home, drift) * heat
        for _ in range(2):
            centre, _ = apart(centre, radius, gap)
    centre = settled(centre, radius, gap, SETTLING)
    # One that is new may push all others aside: the map as a whole stays where it is.
    return centre - (centre - start)[known].mean(axis=0) if known.any() else centre


def settled(place: Numbers, radius: Numbers, gap: float, rounds: int) -> Numbers:
    """Return places at which no two discs overlap by a unit or more, as far as that is reached in time."""
    for _ in range(rounds):
        place, overlap = apart(place, radius, gap)
        if overlap < 1:
            break
    return place


def apart(place: Numbers, radius: Numbers, gap: float) -> tuple[Numbers, float]:
    """Push discs that are closer than a gap away from each other, the smaller further; return the worst overlap."""
    pairs: Ids = cKDTree(place).query_pairs(2 * radius.max() + gap, output_type="ndarray")
    one, other = pairs[:, 0], pairs[:, 1]
    way = place[one] - place[other]
    distance = np.hypot(way[:, 0], way[:, 1])
    lack = radius[one] + radius[other] + gap - distance
    close = lack > 1e-3
    if not close.any():
        return place, 0.0
    one, other, way, distance, lack = one[close], other[close], way[close], distance[close], lack[close]
    # Two on the same spot part along a line of their own.
    angle = GOLDEN_ANGLE * (one + other)
    apart = np.where(
        distance[:, None] > 1e-6,
        way / np.maximum(distance, 1e-6)[:, None],
        np.column_stack((np.cos(angle), np.sin(angle))),
    )
    yields = (radius[other] ** 2 / (radius[one] ** 2 + radius[other] ** 2))[:, None]
    push = apart * lack[:, None]
    ends = np.concatenate((one, other))
    shift = np.concatenate((push * yields, -push * (1 - yields)))
    crowd = np.sqrt(np.maximum(np.bincount(ends, minlength=len(place)), 1))
    moved = [np.bincount(ends, shift[:, axis], len(place)) / crowd for axis in (0, 1)]
    return place + YIELDING * np.column_stack(moved), float(lack.max())


def _sunflower(count: int) -> Numbers:
    """Return points that fill a disc evenly, from the middle outwards."""
    number = np.arange(count)
    angle = number * GOLDEN_ANGLE
    points: Numbers = np.sqrt(number + 0.5)[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
    return points
