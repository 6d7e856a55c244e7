"""Lower the importance of unused memories (the decay job), and archive old unimportant ones (the archive job).

Decay: importance falls while a memory is unused and rises with use. Tiers only rise.

    raised = given + (1 − given) · ½ · (1 − 2^(−uses / 5))
    half-life = the kind's · 2^(tiers risen) · (1 + log₂(1 + uses))
    importance = max(floor, raised · 2^(−days / half-life))

Days are active days of the workspace since the memory was last written, changed or recalled. A use is a recall or a
repeated write. The result depends on the row alone, so a repeated run does not lower the importance again.

Archive: memories that are cold, old, unimportant and not protected leave the search results. The audit trail records
each archiving with an undo. A restored memory counts as used that day, so that it is not archived again at once.

The forecast shows how both jobs will treat a memory that stays unused.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate, pairwise

from pipeline.kernel.job_runs import JobRun, Report
from pipeline.kernel.kinds import TRAITS
from pipeline.kernel.records import Kind, Tier
from pipeline.kernel.store import audit, changes, index_state, memories, memory_usage
from pipeline.kernel.times import utc_text

# Importance never falls below this value, unless the memory started lower.
FLOOR = 0.05
# Use raises importance at most by this share of the distance to 1, and by half of that share after this many uses.
REACH = 0.5
HALF_WAY_USES = 5.0
# Importance falls in this many steps per half-life. Smaller steps would not change the ranking noticeably, and every
# step is a change that all readers must process.
STEPS = 4
EPISODIC_RECALLS, SEMANTIC_RECALLS = 3, 10
# An inactive period counts for a fortnight at most, so that a user who returns after half a year still finds the
# memories.
IDLE_DAYS = 14.0
PAGE = 500
# Limits the time that a write of the web server waits to a few milliseconds.
FADED_PER_TRANSACTION = 100

TIERS = tuple(Tier)
UNIX_EPOCH_JULIAN, DAY_S = 2_440_587.5, 86_400.0

ACTOR = "archive"
# Active days since the last write, change or recall: two months for chatter, half a year for facts. Settled memories
# (lessons, decisions, milestones, documents, often recalled ones) are archived only after two years.
COLD_DAYS: Mapping[Tier, float] = {Tier.WORKING: 60.0, Tier.EPISODIC: 180.0, Tier.SEMANTIC: 730.0}
# Active days since the memory was written.
OLD_DAYS = 90.0
UNIMPORTANT = 0.15
# The first run on an old workspace must not empty it before its owner has seen the effect of the job.
ARCHIVE_LIMIT = 1000
# Runs that start within this time share one limit.
LIMIT_WINDOW = timedelta(hours=20)
ARCHIVED_PER_TRANSACTION = 25

AHEAD_DAYS = (30.0, 90.0)


@dataclass(frozen=True, slots=True)
class LivedTime:
    """Active time of a workspace: `days` (Julian) with activity, `idle` the inactive days to subtract before each of
    them.
    """

    days: Sequence[float]
    idle: Sequence[float]

    def between(self, begin: float, end: float) -> float:
        """Return the active days from one Julian day to another, 0 if the second is not later."""
        return max(0.0, self._at(end) - self._at(begin))

    def _at(self, day: float) -> float:
        index = bisect_right(self.days, day) - 1
        if index < 0:
            return day
        return self.days[index] - self.idle[index] + min(day - self.days[index], IDLE_DAYS)


def measure_lived_time(days: Sequence[float]) -> LivedTime:
    """Return the active time of a workspace with these active days, in order."""
    gaps = (max(0.0, after - before - IDLE_DAYS) for before, after in pairwise(days))
    return LivedTime(days, list(accumulate(gaps, initial=0.0)))


def decay(job: JobRun) -> Report:
    """Update the importance and tier of every active memory."""
    with job.database.read() as db:
        lived, total = measure_lived_time(memory_usage.active_days(db)), memory_usage.count(db)
    today, last, done = julian_day(job), 0, 0
    while True:
        if job.pausing():
            return job.report(more=True)
        with job.database.read() as db:
            page = memory_usage.page(db, job.at, last, PAGE)
        if not page:
            return job.report(more=False)
        due = [(usage, *target) for usage in page if (target := due_change(usage, lived, today)) is not None]
        for start in range(0, len(due), FADED_PER_TRANSACTION):
            if job.pausing():
                return job.report(more=True)
            _write_changes(job, due[start : start + FADED_PER_TRANSACTION])
        last, done = page[-1].seq, done + len(page)
        job.progress(done, total)


def due_change(usage: memory_usage.Usage, lived: LivedTime, today: float) -> tuple[float, Tier] | None:
    """Return the new importance and tier of a memory; None if they stay the same."""
    tier = tier_of(usage)
    importance = importance_of(usage, tier, lived.between(usage.used, today))
    return None if importance == usage.importance and tier == usage.tier else (importance, tier)


def importance_of(usage: memory_usage.Usage, tier: Tier, days: float) -> float:
    """Return the importance of a memory of a tier after this many unused active days."""
    raised = usage.given + (1 - usage.given) * REACH * (1 - 2 ** (-_uses(usage) / HALF_WAY_USES))
    if not usage.lasting:
        steps = math.floor(STEPS * days / half_life_days(usage, tier))
        raised = max(raised * 2 ** (-steps / STEPS), min(usage.given, FLOOR))
    # Without use the original importance stays exact, to the last digit.
    return usage.given if raised == usage.given else round(raised, 4)


def half_life_days(usage: memory_usage.Usage, tier: Tier) -> float:
    """Return the half-life of a memory's importance in days: that of its kind, longer with each tier and each use.

    A memory that was needed again is likely to be needed once more (Pimsleur, "A Memory Schedule", 1967).
    """
    traits = TRAITS[Kind(usage.kind)]
    risen = TIERS.index(tier) - TIERS.index(traits.tier)
    return traits.half_life_days * float(2**risen) * (1 + math.log2(1 + _uses(usage)))


def tier_of(usage: memory_usage.Usage) -> Tier:
    """Return the tier that a memory has earned by its recalls; a tier never falls."""
    earned = Tier.WORKING
    if usage.recalls >= EPISODIC_RECALLS:
        earned = Tier.EPISODIC
    if usage.recalls >= SEMANTIC_RECALLS:
        earned = Tier.SEMANTIC
    return max(Tier(usage.tier), earned, key=TIERS.index)


def julian_day(job: JobRun) -> float:
    """Return the present as a Julian day."""
    return job.now.timestamp() / DAY_S + UNIX_EPOCH_JULIAN


def _uses(usage: memory_usage.Usage) -> int:
    return usage.recalls + usage.repeats


def _write_changes(job: JobRun, chunk: Sequence[tuple[memory_usage.Usage, float, Tier]]) -> None:
    with job.database.write() as db:
        written = [change for change in chunk if memory_usage.set_importance(db, *change)]
        if written:
            changes.append(db, changes.FADE, [usage.id for usage, _, _ in written])
    for usage, importance, tier in written:
        job.counts["faded"] += importance < usage.importance
        job.counts["raised"] += importance > usage.importance
        job.counts["risen"] += tier != usage.tier


def archive(job: JobRun) -> Report:
    """Archive eligible memories, oldest first, up to a daily limit."""
    used_by = utc_text(job.now - timedelta(days=min(COLD_DAYS.values())))
    with job.database.read() as db:
        lived = measure_lived_time(memory_usage.active_days(db))
        room = ARCHIVE_LIMIT - memory_usage.count_archived_since(
            db, ACTOR, utc_text(job.now - LIMIT_WINDOW), ARCHIVE_LIMIT
        )
    job.counts["archived"] = 0
    if not _archive_ended(job):
        return job.report(more=True)
    last, today = 0, julian_day(job)
    while job.counts["archived"] < room:
        if job.pausing():
            return job.report(more=True)
        with job.database.read() as db:
            page = memory_usage.list_unreferenced(db, job.at, used_by, last, PAGE)
        if not page:
            break
        due = [usage for usage in page if may_go(usage, lived, today)][: room - job.counts["archived"]]
        for start in range(0, len(due), ARCHIVED_PER_TRANSACTION):
            if job.pausing():
                return job.report(more=True)
            job.counts["archived"] += _archive_batch(job, used_by, due[start : start + ARCHIVED_PER_TRANSACTION], lived)
        last = page[-1].seq
        job.progress(job.counts["archived"], room)
    return job.report(more=False)


def _archive_ended(job: JobRun) -> bool:
    """Archive the eligible memories of a page; return False when it is time to pause."""
    while True:
        if job.pausing():
            return False
        with job.database.write() as db:
            ended = memories.list_ended(db, job.at, ARCHIVED_PER_TRANSACTION)
            for memory in ended:
                memories.archive(db, memory.seq, job.at)
                index_state.drop_tokens(db, memory.seq)
                audit.add(db, job.at, ACTOR, audit.AuditAction.ARCHIVE, memory.id, detail={"ended": memory.expires_at})
            if ended:
                changes.append(db, changes.ARCHIVE, [memory.id for memory in ended])
        if ended:
            job.counts["ended"] += len(ended)
        if len(ended) < ARCHIVED_PER_TRANSACTION:
            return True


def may_go(usage: memory_usage.Usage, lived: LivedTime, today: float) -> bool:
    """Tell whether an unprotected memory is cold, old and unimportant enough to archive."""
    unused, tier = lived.between(usage.used, today), tier_of(usage)
    return (
        unused >= COLD_DAYS[tier]
        and lived.between(usage.written, today) >= OLD_DAYS
        and importance_of(usage, tier, unused) < UNIMPORTANT
    )


def _archive_batch(job: JobRun, used_by: str, due: Sequence[memory_usage.Usage], lived: LivedTime) -> int:
    today = julian_day(job)
    with job.database.write() as db:
        # Skip memories that were used or linked after they were read.
        going = memory_usage.filter_unchanged(db, job.at, used_by, due)
        for usage in going:
            memories.archive(db, usage.seq, job.at)
            index_state.drop_tokens(db, usage.seq)
            unused = lived.between(usage.used, today)
            detail = {
                "unused_days": round(unused),
                "importance": importance_of(usage, tier_of(usage), unused),
                "recalls": usage.recalls,
            }
            audit.add(db, job.at, ACTOR, audit.AuditAction.ARCHIVE, usage.id, detail=detail)
        if going:
            changes.append(db, changes.ARCHIVE, [usage.id for usage in going])
    return len(going)


@dataclass(frozen=True, slots=True)
class Forecast:
    """How the importance of a memory falls, in active days of its workspace.

    `raised` is the importance with the effect of use, before any decay. `now` is the importance today, `later` the
    importance after each number of days. `kind_days` is the half-life of the kind. `half_life_days` is the half-life of
    this memory: twice as long for each of `risen` tiers, and longer with each of `uses`. `leaves_in_days` is the time
    until the archive job may archive it if it is not protected.
    """

    given: float
    raised: float
    now: float
    later: tuple[tuple[float, float], ...]
    lasting: bool
    kind_days: float
    half_life_days: float
    risen: int
    uses: int
    unused_days: float
    leaves_in_days: float | None


def forecast(
    usage: memory_usage.Usage, lived: LivedTime, today: float, ahead: Sequence[float] = AHEAD_DAYS
) -> Forecast:
    """Return how a memory's importance falls after a Julian day, if it stays unused and its workspace active."""
    tier, unused = tier_of(usage), lived.between(usage.used, today)
    half_life, raised = half_life_days(usage, tier), importance_of(usage._replace(lasting=True), tier, 0)
    return Forecast(
        given=usage.given,
        raised=raised,
        now=importance_of(usage, tier, unused),
        later=tuple((days, importance_of(usage, tier, unused + days)) for days in ahead),
        lasting=usage.lasting,
        kind_days=TRAITS[Kind(usage.kind)].half_life_days,
        half_life_days=half_life,
        risen=TIERS.index(tier) - TIERS.index(TRAITS[Kind(usage.kind)].tier),
        uses=usage.recalls + usage.repeats,
        unused_days=unused,
        leaves_in_days=None if usage.lasting else _leaves_in(usage, lived, today, raised, tier),
    )


def _leaves_in(usage: memory_usage.Usage, lived: LivedTime, today: float, raised: float, tier: Tier) -> float:
    unused = lived.between(usage.used, today)
    step_days = half_life_days(usage, tier) / STEPS
    # The first step below the archive limit. Importance is rounded, so the last steps are computed as decay computes
    # them.
    steps = 0 if raised < UNIMPORTANT else max(0, math.floor(STEPS * math.log2(raised / UNIMPORTANT)) - 1)
    while importance_of(usage, tier, (steps + 0.5) * step_days) >= UNIMPORTANT:
        steps += 1
    faded = steps * step_days - unused
    return max(0.0, faded, COLD_DAYS[tier] - unused, OLD_DAYS - lived.between(usage.written, today))
