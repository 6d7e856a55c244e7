"""Lessons and whether they help: what was shown, followed, ignored, and what that says."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Connection

from pipeline.records import Memory
from pipeline.store import impressions
from pipeline.store.impressions import Tally

# Fewer answers than this say nothing.
ENOUGH = 5
# Of the normal distribution, for 95 %.
Z = 1.959964


class Usefulness(StrEnum):
    """What the answers to a lesson's surfacings say."""

    USEFUL = "useful"
    UNPROVEN = "unproven"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson and its record; `low` and `high` bound the share of times that it is followed."""

    memory: Memory
    tally: Tally
    low: float
    high: float
    usefulness: Usefulness


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share (Wilson, "Probable Inference", JASA 22, 1927)."""
    if not trials:
        return 0.0, 1.0
    share, square = successes / trials, Z * Z
    centre = (share + square / (2 * trials)) / (1 + square / trials)
    half = Z / (1 + square / trials) * math.sqrt(share * (1 - share) / trials + square / (4 * trials * trials))
    return max(0.0, centre - half), min(1.0, centre + half)


def usefulness(tally: Tally) -> Usefulness:
    """Say what a record proves: followed or ignored more often than not, or nothing yet."""
    answered = tally.followed + tally.ignored
    low, high = wilson_interval(tally.followed, answered)
    if answered < ENOUGH or low <= 0.5 <= high:
        return Usefulness.UNPROVEN
    return Usefulness.USEFUL if low > 0.5 else Usefulness.DEAD


def with_records(db: Connection, lessons: Sequence[Memory]) -> list[Lesson]:
    """Return lessons with their records, in their order."""
    found = []
    for memory in lessons:
        tally = impressions.tally(db, memory.seq)
        low, high = wilson_interval(tally.followed, tally.followed + tally.ignored)
        found.append(Lesson(memory, tally, low, high, usefulness(tally)))
    return found
