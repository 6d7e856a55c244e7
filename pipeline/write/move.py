"""A memory goes to another workspace: stored there first, then archived here, so that no crash can lose it.

Broken off between the two, it stands in both; moved again, the one there stands for it.
"""

from collections.abc import Sequence
from dataclasses import replace

from pipeline.errors import Conflict
from pipeline.records import UNSTORED, HistoryEntry, Memory, Outcome, Receipt
from pipeline.store import history
from pipeline.store.database import Database
from pipeline.text.tokens import memory_tokens
from pipeline.times import utc_now
from pipeline.write.accept import WriteEffects, WritePolicy, is_incognito, log_and_enqueue, write_moved
from pipeline.write.prepare import Prepared
from pipeline.write.revise import archive_memory, get_existing

MOVED = "moved"


def take_in(
    database: Database, memory: Memory, earlier: Sequence[HistoryEntry], origin: str, policy: WritePolicy
) -> Receipt:
    """Store a memory of the workspace `origin` with its history; raise Conflict where nothing of it is stored."""
    now = utc_now()
    item = Prepared(replace(memory, seq=UNSTORED, updated_at=now), memory_tokens(memory.content, memory.occurred_at))
    effects = WriteEffects()
    with database.write() as db:
        if is_incognito(db, memory, policy):
            raise Conflict("nothing of it is stored there: the workspace or its session is incognito")
        receipt = write_moved(db, item, effects)
        log_and_enqueue(db, effects)
        if receipt.outcome is not Outcome.MERGED:
            stored = get_existing(db, receipt.id)
            for entry in earlier:
                history.add(db, stored.seq, entry.at, entry.event, entry.content, entry.detail)
            history.add(db, stored.seq, now, MOVED, None, {"from": origin})
    return receipt


def put_away(database: Database, memory_id: str, target: str, new_id: str) -> None:
    """Archive a memory that the workspace `target` has taken in."""
    now = utc_now()
    with database.write() as db:
        memory = get_existing(db, memory_id)
        if memory.archived_at is None:
            history.add(db, memory.seq, now, MOVED, None, {"to": target, "as": new_id})
            archive_memory(db, memory, now)
