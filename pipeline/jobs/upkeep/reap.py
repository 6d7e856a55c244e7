"""Reap dead processes: release what they hold, and wake workers for work whose message was lost."""

import time
from collections.abc import Callable
from sqlite3 import Connection

from pipeline.records import Stage
from pipeline.store import runs, work
from pipeline.store.database import Database, wake_on_commit


def something_waits(db: Connection, is_alive: Callable[[str], bool]) -> bool:
    """Tell whether work can be claimed, or is held by somebody who is gone."""
    owners = {*work.owners(db), *runs.lock_owners(db)}
    return bool(work.list_due_stages(db, time.time())) or any(not is_alive(owner) for owner in owners)


def reap(database: Database, is_alive: Callable[[str], bool]) -> list[Stage]:
    """Release leases and locks of holders that are gone; wake and return the stages that have something to claim."""
    release(database, is_alive)
    with database.read() as db:
        due = work.list_due_stages(db, time.time())
    if due:
        with database.write() as db:
            wake_on_commit(db, *due)
    return due


def release(database: Database, is_alive: Callable[[str], bool]) -> None:
    """Take back the leases and locks of holders that are gone."""
    with database.read() as db:
        gone = [owner for owner in {*work.owners(db), *runs.lock_owners(db)} if not is_alive(owner)]
    if gone:
        with database.write() as db:
            for owner in gone:
                work.expire(db, owner)
                runs.drop_locks(db, owner)
            work.dead_letter_vanished(db, time.time())
