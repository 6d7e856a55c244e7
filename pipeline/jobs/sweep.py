"""The sweep: find work whose doorbell was lost and leases whose holder is gone."""

import time
from collections.abc import Callable
from sqlite3 import Connection

from pipeline.records import Stage
from pipeline.store import runs, work
from pipeline.store.database import Database


def something_waits(db: Connection, is_alive: Callable[[str], bool]) -> bool:
    """Tell whether work can be claimed, or is held by somebody who is gone."""
    owners = {*work.owners(db), *runs.lock_owners(db)}
    return bool(work.due(db, time.time())) or any(not is_alive(owner) for owner in owners)


def sweep(database: Database, is_alive: Callable[[str], bool]) -> list[Stage]:
    """Free the leases of holders that are gone; return the stages that have something to claim."""
    now = time.time()
    with database.read() as db:
        gone = [owner for owner in {*work.owners(db), *runs.lock_owners(db)} if not is_alive(owner)]
    if gone:
        with database.write() as db:
            for owner in gone:
                work.expire(db, owner)
                runs.drop_locks(db, owner)
            work.bury(db, now)
    with database.read() as db:
        return work.due(db, now)


def free_locks(database: Database, is_alive: Callable[[str], bool]) -> None:
    """Take back the locks of jobs whose runner is gone."""
    with database.read() as db:
        gone = [owner for owner in runs.lock_owners(db) if not is_alive(owner)]
    if gone:
        with database.write() as db:
            for owner in gone:
                runs.drop_locks(db, owner)
