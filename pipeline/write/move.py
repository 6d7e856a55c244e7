"""A memory goes to another workspace: stored there first, then archived here, so that no crash can lose it.

Broken off between the two, it stands in both; moved again, the one there stands for it.
"""

from dataclasses import dataclass, replace

from pipeline.errors import Conflict
from pipeline.records import UNSTORED, Outcome, Receipt
from pipeline.store import history
from pipeline.store.database import Database
from pipeline.text.tokens import memory_tokens
from pipeline.times import utc_now
from pipeline.write.accept import WriteEffects, WritePolicy, is_incognito, log_and_enqueue, write_moved
from pipeline.write.prepare import Prepared
from pipeline.write.revise import archive_memory, get_existing

MOVED = "moved"


@dataclass(frozen=True, slots=True)
class Place:
    """A workspace's id and its database."""

    id: str
    database: Database


def move(origin: Place, target: Place, memory_id: str, policy: WritePolicy) -> Receipt:
    """Store a memory with its history in another workspace, then archive it here.

    Raises NotFound for none, Conflict for one in the archive and for a target that stores nothing.
    """
    with origin.database.read() as db:
        memory = get_existing(db, memory_id)
        earlier = history.of(db, memory.seq)
    if memory.archived_at is not None:
        raise Conflict("it is in the archive; restore it first")
    now = utc_now()
    item = Prepared(replace(memory, seq=UNSTORED, updated_at=now), memory_tokens(memory.content, memory.occurred_at))
    effects = WriteEffects()
    with target.database.write() as db:
        if is_incognito(db, memory, policy):
            raise Conflict(f"{target.id} is incognito: nothing is stored there")
        receipt = write_moved(db, item, effects)
        log_and_enqueue(db, effects)
        if receipt.outcome is not Outcome.MERGED:
            stored = get_existing(db, receipt.id)
            for entry in earlier:
                history.add(db, stored.seq, entry.at, entry.event, entry.content, entry.detail)
            history.add(db, stored.seq, now, MOVED, None, {"from": origin.id})
    with origin.database.write() as db:
        memory = get_existing(db, memory_id)
        if memory.archived_at is None:
            history.add(db, memory.seq, now, MOVED, None, {"to": target.id, "as": receipt.id})
            archive_memory(db, memory, now)
    return receipt
