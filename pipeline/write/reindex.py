"""Index a memory again after its text, its fields or its tags changed."""

import time
from sqlite3 import Connection

from pipeline.kernel.records import Memory
from pipeline.kernel.records.digestion import DIGESTION
from pipeline.kernel.store import changes, index_state, memories, work
from pipeline.text.memory_terms import embedded_text, memory_terms


def reindex(db: Connection, before: Memory) -> None:
    """Update the indexes within a transaction that has changed a memory and logged the change."""
    after = memories.by_seqs(db, [before.seq])[before.seq]
    if embedded_text(after) != embedded_text(before):
        index_state.outdate_embedding(db, after.seq)
        work.add(db, [after.seq], DIGESTION, time.time())
    is_searchable = after.archived_at is None and not after.candidate
    if is_searchable and memory_terms(after) != memory_terms(before):
        index_state.put_tokens(db, after.seq, memory_terms(after), changes.generation(db))
