"""Set and end keyed facts."""

from sqlite3 import Connection
from typing import Any, NamedTuple

from pipeline.kernel.errors import Conflict, NotFound
from pipeline.kernel.records import Draft, FactKey, Memory, Receipt, Scope
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.store import audit, changes, facts
from pipeline.kernel.store.audit import AuditEntry
from pipeline.kernel.store.database import Database
from pipeline.kernel.times import utc_now
from pipeline.write.accept import commit
from pipeline.write.fact_placement import end_at
from pipeline.write.prepare import prepare_fact
from pipeline.write.revise import archive_memory, get_existing


class EndedFact(NamedTuple):
    """An ended value, and its earlier end."""

    fact: Memory
    previous_end: str | None


def set_fact(database: Database, key: FactKey, value: Any, draft: Draft, policy: WritePolicy) -> Receipt:
    """Set a key's value from the draft's time on; end the previous value without overwriting it."""
    return commit(database, [prepare_fact(key, value, draft)], policy)[0]


def end_fact(database: Database, key: FactKey, scope: Scope, moment: str | None = None) -> EndedFact:
    """End the value that is valid at a time (default: now) without a successor; raise NotFound if there is none."""
    now = utc_now()
    ends = moment or now
    with database.write() as db:
        holder = facts.find_valid(db, key, scope, ends)
        if holder is None:
            raise NotFound("This fact has no value at that time")
        end_at(db, holder, ends, now)
        changes.append(db, changes.CLOSE, [holder.id])
        return EndedFact(get_existing(db, holder.id), holder.valid_to)


def take_back_fact(database: Database, fact_id: str) -> Memory:
    """Undo the setting of a value: archive it and reopen the value that it ended; return the archived fact.

    Raises Conflict for a value that was stated again later: the later statement still counts.
    """
    with database.write() as db:
        return _take_back(db, fact_id, utc_now())


def _take_back(db: Connection, fact_id: str, now: str) -> Memory:
    fact = _get_unarchived(db, fact_id)
    assert fact.valid_from is not None
    if facts.repeats(db, fact, fact.valid_from):
        raise Conflict("This value was stated again later. End the fact instead")
    ended = None if fact.candidate else facts.find_replaced_by(db, fact)
    archive_memory(db, fact, now)
    if ended is not None and fact.valid_to != fact.valid_from:
        facts.close(db, ended.seq, fact.valid_to, now)
        changes.append(db, changes.CLOSE, [ended.id])
    return get_existing(db, fact_id)


def reopen_fact(database: Database, fact_id: str, until: str | None) -> Memory:
    """Undo the end of a value: it is valid until a time, forever without one, or until the next value."""
    with database.write() as db:
        return _reopen(db, fact_id, until, utc_now())


def undo_close(db: Connection, entry: AuditEntry, now: str) -> Memory:
    """Undo within a transaction that a value ended, and take back the value that replaced it, if any."""
    if entry.other_id is not None:
        _take_back(db, entry.other_id, now)
    else:
        _reopen(db, entry.memory_id, entry.detail.get("until"), now)
    audit.mark_undone(db, entry.id, now)
    return get_existing(db, entry.memory_id)


def _reopen(db: Connection, fact_id: str, until: str | None, now: str) -> Memory:
    fact = _get_unarchived(db, fact_id)
    assert fact.key is not None
    assert fact.valid_from is not None
    following = facts.after(db, fact.key, fact.scope, fact.valid_from)
    bounds = (until, None if following is None else following.valid_from)
    ends = min((bound for bound in bounds if bound is not None), default=None)
    if ends is not None and fact.valid_to is not None and ends < fact.valid_to:
        raise Conflict("The new end must not be earlier than the current end")
    facts.close(db, fact.seq, ends, now)
    changes.append(db, changes.CLOSE, [fact.id])
    return get_existing(db, fact_id)


def _get_unarchived(db: Connection, fact_id: str) -> Memory:
    """Return a fact that is not archived; raise NotFound otherwise."""
    fact = facts.by_id(db, fact_id)
    if fact is None or fact.archived_at is not None:
        raise NotFound("no such fact")
    return fact
