"""The vectors job: compact the table, and queue again what it should hold and does not."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from pipeline.errors import IndexUnavailable
from pipeline.index.vectors import VectorTable
from pipeline.records import Stage
from pipeline.store import embeddings, memories, meta, work
from pipeline.store.database import Database


def compact_vectors(table: VectorTable) -> None:
    """Merge what appends have left behind."""
    with table.exclusive():
        table.compact()


def needs_compaction(table: VectorTable, fragments: int) -> bool:
    """Tell whether appends have left at least this many fragments."""
    return table.fragments() >= fragments


def heal_vectors(database: Database, table: VectorTable, folder: Path, model: str, log: Callable[[str], None]) -> int:
    """Queue memories whose vectors are missing, or of another model; return how many. Drop vectors of no memory.

    A table that cannot be read is deleted: everything in it can be computed again.
    """
    with table.exclusive():
        present = _present(table, folder, log)
        with database.read() as db:
            lost = [seq for seq in embeddings.expected(db, model) if seq not in present]
            missing = embeddings.missing(db, model)
            gone = present.difference(memories.all_seqs(db))
        if gone:
            # A store put back from a copy may know less than the index; a rebuild replaces only what the store knows.
            table.remove(sorted(gone))
            table.scrub()
            with database.write() as db:
                meta.increment(db, meta.VECTORS_EPOCH)
        if not lost and not missing:
            return 0
        if lost:
            log(f"the vectors of {len(lost)} memories were lost and are computed anew")
        with database.write() as db:
            for seq in lost:
                embeddings.forget(db, seq)
            meta.increment(db, meta.VECTORS_EPOCH)
            work.add(db, {*lost, *missing}, [Stage.EMBED], time.time())
    return len({*lost, *missing})


def _present(table: VectorTable, folder: Path, log: Callable[[str], None]) -> set[int]:
    # Counting would only read the manifest; reading a column opens every file, so that a cut one shows.
    try:
        return table.seqs()
    except IndexUnavailable as error:
        log(f"the vector index was broken and is built anew: {error}")
    shutil.rmtree(folder)
    return set()
