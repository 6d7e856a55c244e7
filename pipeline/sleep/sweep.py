"""The sweep: find work whose doorbell was lost and leases whose holder is gone."""

import time
from collections.abc import Callable

from pipeline.records import Stage
from pipeline.store import work
from pipeline.store.database import Database


def sweep(database: Database, is_alive: Callable[[str], bool]) -> list[Stage]:
    """Free the leases of holders that are gone; return the stages that have something to claim."""
    now = time.time()
    with database.read() as db:
        gone = [owner for owner in work.owners(db) if not is_alive(owner)]
    if gone:
        with database.write() as db:
            for owner in gone:
                work.expire(db, owner)
            work.bury(db, now)
    with database.read() as db:
        return work.due(db, now)
