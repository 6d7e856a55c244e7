"""Keep the text of sessions within the storage budget (the sessions job)."""

from pipeline.kernel.job_runs import JobRun, Report
from pipeline.kernel.store import session_archive

MEGABYTE = 1_000_000
# Room made when the budget is exceeded, so that the next messages do not exceed it again.
FREED_SHARE = 0.1
# Limits the time that a write of the web server waits.
ROWS_PER_TRANSACTION = 1000


def sessions(run: JobRun, budget_mb: int) -> Report:
    """Delete the oldest text of sessions if all of it exceeds a budget: what agents said first, users' words last."""
    budget = budget_mb * MEGABYTE
    with run.database.read() as db:
        size = session_archive.measure_sessions(db)
    excess = size - int(budget * (1 - FREED_SHARE)) if size > budget else 0
    while excess > 0:
        if run.pausing():
            return run.report(more=True)
        with run.database.write() as db:
            freed = session_archive.trim_sessions(db, excess, ROWS_PER_TRANSACTION)
        if not freed:
            break
        excess -= freed
        run.counts["freed"] += freed
    return run.report(more=False)
