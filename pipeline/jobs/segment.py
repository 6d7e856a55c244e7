"""The segment job: fold the tail into a new lexical segment and swap it in."""

from pathlib import Path

from filelock import FileLock

from pipeline.index.segment import build_segment, remove_segments
from pipeline.store import changes, memories, meta, tail
from pipeline.store.database import Database
from pipeline.text.tokens import memory_tokens

PAGE = 5000


def needs_segment(database: Database, tail_rows: int) -> bool:
    """Tell whether the tail has grown past a number of rows, or a purge or a broken segment asks for a new one."""
    with database.read() as db:
        return tail.size(db) >= tail_rows or meta.get(db, meta.SEGMENT_WANTED) is not None


def rebuild_segment(database: Database, folder: Path) -> int:
    """Build a segment of every active memory and make it current; return the number of memories, 0 for no need.

    The store names the current segment in the same transaction that trims the tail, so that a reader sees the old
    pair or the new one.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with FileLock(folder / "build.lock"):
        # Several workers may be sent for one segment: who waited here finds the work done.
        if not needs_segment(database, 1):
            return 0
        with database.read() as db:
            covered = changes.generation(db)
            documents: list[tuple[int, list[str]]] = []
            last = 0
            while page := memories.active_texts(db, last, PAGE):
                documents.extend((seq, memory_tokens(content, occurred_at)) for seq, content, occurred_at in page)
                last = page[-1][0]
        name = build_segment(folder, documents)
        with database.write() as db:
            meta.put(db, meta.SEGMENT, name)
            meta.put(db, meta.SEGMENT_COVERS, str(covered))
            tail.trim(db, covered)
            # A purge that came while we read is still in what we built: its wish stays.
            wanted = meta.get(db, meta.SEGMENT_WANTED)
            if wanted is not None and int(wanted) <= covered:
                meta.drop(db, meta.SEGMENT_WANTED)
        remove_segments(folder, keep=name)
    return len(documents)
