"""The vectors job: compact the table, and queue again what it should hold and does not."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from pipeline.errors import IndexUnavailable
from pipeline.index.vectors import MANY_FRAGMENTS, VectorTable
from pipeline.records import Stage
from pipeline.store import embeddings, meta, work
from pipeline.store.database import Database


def compact_vectors(table: VectorTable) -> None:
    """Merge what appends have left behind."""
    with table.exclusive():
        table.compact()


def needs_compaction(table: VectorTable) -> bool:
    """Tell whether appends have left many fragments."""
    return table.fragments() >= MANY_FRAGMENTS


def heal_vectors(database: Database, table: VectorTable, folder: Path, model: str, log: Callable[[str], None]) -> int:
    """Queue memories whose vectors are missing, or of another model; return how many.

    A table that cannot be read is deleted: everything in it can be computed again.
    """
    with table.exclusive():
        try:
            count = table.count()
            with database.read() as db:
                whole = count == embeddings.expected_total(db, model)
            present = None if whole else table.seqs()
        except IndexUnavailable as error:
            log(f"the vector index was broken and is built anew: {error}")
            shutil.rmtree(folder, ignore_errors=False)
            present = set()
        with database.read() as db:
            lost = [] if present is None else [s for s in embeddings.expected(db, model) if s not in present]
            missing = embeddings.missing(db, model)
        if not lost and not missing:
            return 0
        with database.write() as db:
            for seq in lost:
                embeddings.forget(db, seq)
            meta.increment(db, meta.VECTORS_EPOCH)
            work.add(db, {*lost, *missing}, [Stage.EMBED], time.time())
    return len({*lost, *missing})
