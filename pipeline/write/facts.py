"""Setting and ending keyed facts."""

from typing import Any

from pipeline.errors import NotFound
from pipeline.records import Draft, FactKey, Memory, Receipt, Scope
from pipeline.store import changes, facts, memories
from pipeline.store.database import Database
from pipeline.times import utc_now
from pipeline.write.accept import Door, commit
from pipeline.write.keyed import end_at
from pipeline.write.prepare import prepare_fact


def set_fact(database: Database, key: FactKey, value: Any, draft: Draft, door: Door) -> Receipt:
    """Let a key have a value from the draft's time on; the value before is ended, never overwritten."""
    return commit(database, [prepare_fact(key, value, draft)], door)[0]


def end_fact(database: Database, key: FactKey, scope: Scope, moment: str | None = None) -> Memory:
    """End the value that holds at a moment, now by default, without a successor; raise NotFound where none holds."""
    now = utc_now()
    ends = moment or now
    with database.write() as db:
        holder = facts.holding(db, key, scope, ends)
        if holder is None:
            raise NotFound("no value holds")
        end_at(db, holder, ends, now)
        changes.append(db, changes.CLOSE, [holder.id])
        ended = memories.get(db, holder.id)
        assert ended is not None
        return ended
