"""What reading learns and the store must know; recall itself never writes."""

from pipeline.store import meta
from pipeline.store.database import Database


def ask_for_segment(database: Database) -> bool:
    """Ask for a new lexical segment because the current one cannot be read; return whether nobody had asked yet."""
    with database.write() as db:
        if meta.get(db, meta.SEGMENT_WANTED) is not None:
            return False
        meta.put(db, meta.SEGMENT_WANTED, "0")
        return True
