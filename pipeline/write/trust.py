"""What nobody vouches for takes along what is derived from it."""

from sqlite3 import Connection

from pipeline.records import Memory, Trust
from pipeline.store import changes, edges, memories


def lower_trust(db: Connection, memory: Memory, at: str) -> None:
    """Make a memory evidence, and with it everything that is derived from it, directly or not."""
    known = memories.by_seqs(db, [memory.seq, *edges.derived(db, memory.seq)]).values()
    lowered = [one for one in known if one.trust is Trust.TRUSTED]
    for one in lowered:
        memories.update(db, one.seq, {"trust": Trust.EVIDENCE}, at)
    changes.append(db, changes.EDIT, [one.id for one in lowered])
