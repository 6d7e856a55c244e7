"""The decay job: importance falls with the time in which nobody uses a memory and rises with use; tiers rise.

    raised = given + (1 − given) · ½ · (1 − 2^(−uses / 5))
    half-life = the kind's · 2^(tiers risen) · (1 + log₂(1 + uses))
    importance = max(floor, raised · 2^(−days / half-life))

in days as the workspace lives them since the memory was last written, changed or recalled; a use is a recall or a
repeated write. All of it follows from the row alone, so that a night that runs twice fades once.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from pipeline.jobs.runner import JobRun, Report
from pipeline.kinds import TRAITS
from pipeline.records import Kind, Tier
from pipeline.store import changes, fading
from pipeline.store.fading import Usage

# Nothing fades below this unless it was given less.
FLOOR = 0.05
# Use brings importance at most this share of the way to 1, and half of that share in so many uses.
REACH = 0.5
HALF_WAY_USES = 5.0
# Importance falls in this many steps per half-life: a step moves no rank that a person would notice, and each one is a
# change that every reader takes in.
STEPS = 4
EPISODIC_RECALLS, SEMANTIC_RECALLS = 3, 10
# A stretch in which nobody writes or recalls anything counts for a fortnight at most: who comes back after half a year
# finds what was there.
IDLE_DAYS = 14.0
PAGE = 500
# A write of the front waits for a few milliseconds at most.
PER_TRANSACTION = 100

TIERS = tuple(Tier)
UNIX_EPOCH_JULIAN, DAY_S = 2_440_587.5, 86_400.0


@dataclass(frozen=True, slots=True)
class LivedTime:
    """Time as a workspace lives it: `days` (Julian) on which something happened, `idle` what is left out before."""

    days: Sequence[float]
    idle: Sequence[float]

    def between(self, begin: float, end: float) -> float:
        """Return the lived days from one Julian day to another, 0 for one that is not after it."""
        return max(0.0, self._at(end) - self._at(begin))

    def _at(self, day: float) -> float:
        place = bisect_right(self.days, day) - 1
        if place < 0:
            return day
        return self.days[place] - self.idle[place] + min(day - self.days[place], IDLE_DAYS)


def lived_time(days: Sequence[float]) -> LivedTime:
    """Return how time went by for a workspace with these active days, in order."""
    gaps = (max(0.0, after - before - IDLE_DAYS) for before, after in pairwise(days))
    return LivedTime(days, list(accumulate(gaps, initial=0.0)))


def decay(job: JobRun) -> Report:
    """Bring the importance and tier of every active memory up to the job."""
    with job.database.read() as db:
        lived, total = lived_time(fading.active_days(db)), fading.count(db)
    counts: Counter[str] = Counter()
    today, last, done = julian_day(job), 0, 0
    while True:
        if job.pausing():
            return Report(counts, more=True)
        with job.database.read() as db:
            page = fading.page(db, job.at, last, PAGE)
        if not page:
            return Report(counts)
        due = [(usage, *wanted) for usage in page if (wanted := due_change(usage, lived, today)) is not None]
        for chunk in _chunks(due):
            if job.pausing():
                return Report(counts, more=True)
            _write(job, chunk, counts)
        last, done = page[-1].seq, done + len(page)
        job.progress(done, total)


def due_change(usage: Usage, lived: LivedTime, today: float) -> tuple[float, Tier] | None:
    """Return the importance and tier that a memory should have and has not."""
    tier = tier_of(usage)
    importance = importance_of(usage, tier, lived.between(usage.used, today))
    return None if importance == usage.importance and tier == usage.tier else (importance, tier)


def importance_of(usage: Usage, tier: Tier, days: float) -> float:
    """Return the importance of a memory of a tier that nobody used for so many lived days."""
    raised = usage.given + (1 - usage.given) * REACH * (1 - 2 ** (-_uses(usage) / HALF_WAY_USES))
    if not usage.lasting:
        steps = math.floor(STEPS * days / half_life_days(usage, tier))
        raised = max(raised * 2 ** (-steps / STEPS), min(usage.given, FLOOR))
    # What was given stays as it was given, to the last digit.
    return usage.given if raised == usage.given else round(raised, 4)


def half_life_days(usage: Usage, tier: Tier) -> float:
    """Return in how many days a memory's importance halves: its kind's, longer with each tier risen and each use.

    What was needed again is likely to be needed once more (Pimsleur, "A Memory Schedule", 1967).
    """
    traits = TRAITS[Kind(usage.kind)]
    risen = TIERS.index(tier) - TIERS.index(traits.tier)
    return traits.half_life_days * float(2**risen) * (1 + math.log2(1 + _uses(usage)))


def tier_of(usage: Usage) -> Tier:
    """Return the tier that a memory's recalls have earned it; none falls."""
    earned = Tier.WORKING
    if usage.recalls >= EPISODIC_RECALLS:
        earned = Tier.EPISODIC
    if usage.recalls >= SEMANTIC_RECALLS:
        earned = Tier.SEMANTIC
    return max(Tier(usage.tier), earned, key=TIERS.index)


def julian_day(job: JobRun) -> float:
    """Return the present as a Julian day."""
    return job.now.timestamp() / DAY_S + UNIX_EPOCH_JULIAN


def _uses(usage: Usage) -> int:
    return usage.recalls + usage.repeats


def _chunks(due: Sequence[tuple[Usage, float, Tier]]) -> Iterator[Sequence[tuple[Usage, float, Tier]]]:
    return (due[start : start + PER_TRANSACTION] for start in range(0, len(due), PER_TRANSACTION))


def _write(job: JobRun, chunk: Sequence[tuple[Usage, float, Tier]], counts: Counter[str]) -> None:
    with job.database.write() as db:
        written = [one for one in chunk if fading.set_importance(db, *one)]
        if written:
            changes.append(db, changes.FADE, [usage.id for usage, _, _ in written])
    for usage, importance, tier in written:
        counts["faded"] += importance < usage.importance
        counts["raised"] += importance > usage.importance
        counts["risen"] += tier != usage.tier
