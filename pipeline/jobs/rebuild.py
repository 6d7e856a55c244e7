"""The rebuild: ask for every derived index of a workspace to be computed again from the store."""

import time

from pipeline.store import embeddings, memories, meta, work
from pipeline.store.database import Database, wake_on_commit
from pipeline.write.accept import DIGESTION


def request_rebuild(database: Database) -> int:
    """Queue every memory to be embedded and linked again and ask for a new segment; return how many memories.

    The old indexes serve until each part is replaced.
    """
    with database.write() as db:
        seqs = memories.all_seqs(db)
        for seq in seqs:
            embeddings.forget(db, seq)
        meta.put(db, meta.SEGMENT_WANTED, "0")
        wake_on_commit(db, None)
        meta.increment(db, meta.VECTORS_EPOCH)
        work.add(db, seqs, DIGESTION, time.time())
    return len(seqs)
