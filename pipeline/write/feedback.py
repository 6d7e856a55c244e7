"""What reading learns and the store must know; recall itself never writes."""

from pipeline.store import meta
from pipeline.store.database import Database


def ask_for_segment(database: Database, broken: str | None) -> bool:
    """Ask for a new lexical segment because this one cannot be read; return whether there was a reason to.

    There is none when somebody has asked already, or when another segment is current by now: reports come in late.
    """
    with database.write() as db:
        if meta.get(db, meta.SEGMENT_WANTED) is not None or meta.get(db, meta.SEGMENT) != broken:
            return False
        meta.put(db, meta.SEGMENT_WANTED, "0")
        return True
