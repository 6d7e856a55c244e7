"""The archive job: what is cold, old and unimportant, and what nothing holds, leaves the answers.

Each act stands in the audit trail with an undo. What comes back counts as used that day, so that it is not archived
again at once.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from pipeline.jobs.aging.decay import LivedTime, importance_of, julian_day, lived_time, tier_of
from pipeline.jobs.runner import JobRun, Report
from pipeline.records import Tier
from pipeline.store import audit, changes, fading, memories, tail
from pipeline.store.audit import AuditAction
from pipeline.store.fading import Usage
from pipeline.times import utc_text

ACTOR = "archive"
# Lived days since anybody wrote, changed or recalled it: two months for chatter, half a year for facts. What is settled
# (lessons, decisions, milestones, documents, what was recalled often) goes only after two years.
COLD_DAYS: Mapping[Tier, float] = {Tier.WORKING: 60.0, Tier.EPISODIC: 180.0, Tier.SEMANTIC: 730.0}
# Lived days since it was written.
OLD_DAYS = 90.0
UNIMPORTANT = 0.15
# A first night on an old workspace must not empty it before anybody has seen what the job does.
PER_NIGHT = 1000
# Runs closer together than this belong to one job.
NIGHT = timedelta(hours=20)
PAGE = 500
PER_TRANSACTION = 25


def archive(job: JobRun) -> Report:
    """Archive what may go, the oldest first, up to a number a job."""
    used_by = utc_text(job.now - timedelta(days=min(COLD_DAYS.values())))
    with job.database.read() as db:
        lived = lived_time(fading.active_days(db))
        room = PER_NIGHT - fading.archived_since(db, ACTOR, utc_text(job.now - NIGHT), PER_NIGHT)
    archived, last, today = 0, 0, julian_day(job)
    while archived < room:
        if job.pausing():
            return _report(archived, more=True)
        with job.database.read() as db:
            page = fading.loose(db, job.at, used_by, last, PAGE)
        if not page:
            break
        due = [usage for usage in page if may_go(usage, lived, today)][: room - archived]
        for start in range(0, len(due), PER_TRANSACTION):
            if job.pausing():
                return _report(archived, more=True)
            archived += _write(job, used_by, due[start : start + PER_TRANSACTION], lived)
        last = page[-1].seq
        job.progress(archived, room)
    return _report(archived, more=False)


def may_go(usage: Usage, lived: LivedTime, today: float) -> bool:
    """Tell whether a memory that nothing holds is cold, old and unimportant enough."""
    unused, tier = lived.between(usage.used, today), tier_of(usage)
    return (
        unused >= COLD_DAYS[tier]
        and lived.between(usage.written, today) >= OLD_DAYS
        and importance_of(usage, tier, unused) < UNIMPORTANT
    )


def _write(job: JobRun, used_by: str, due: Sequence[Usage], lived: LivedTime) -> int:
    today = julian_day(job)
    with job.database.write() as db:
        # What somebody used or tied to something since it was read stays.
        going = fading.still_loose(db, job.at, used_by, due)
        for usage in going:
            memories.archive(db, usage.seq, job.at)
            tail.drop(db, usage.seq)
            unused = lived.between(usage.used, today)
            detail = {
                "unused_days": round(unused),
                "importance": importance_of(usage, tier_of(usage), unused),
                "recalls": usage.recalls,
            }
            audit.add(db, job.at, ACTOR, AuditAction.ARCHIVE, usage.id, detail=detail)
        if going:
            changes.append(db, changes.ARCHIVE, [usage.id for usage in going])
    return len(going)


def _report(archived: int, *, more: bool) -> Report:
    return Report({"archived": archived}, more)
