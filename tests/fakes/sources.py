"""Memories as if a source had brought them."""

from pipeline.kernel.store import ingested, memories
from pipeline.kernel.store.database import Database


def keep_in_step(database: Database, *memory_ids: str, source: str = "project:shop-0d1a25a8") -> None:
    """Let an item of a source give each of some memories."""
    with database.write() as db:
        for memory_id in memory_ids:
            memory = memories.get(db, memory_id)
            assert memory is not None
            item_seq = ingested.put(db, source, f"{memory_id}.py", "1", memory.created_at)
            ingested.link(db, item_seq, memory.content_hash, memory.seq)
