"""Keep the vectors of turns complete: queue what is missing, and remove what was deleted."""

import time

from pipeline.errors import IndexUnavailable
from pipeline.index.vectors import AllTables, VectorTable
from pipeline.records import Stage
from pipeline.store import meta, turns, work
from pipeline.store.database import Database


def erase_deleted_turns(database: Database, tables: AllTables) -> None:
    """Remove the vectors of turns that no longer exist from the tables of every model."""
    if not tables.list_names():
        return
    with tables.exclusive():
        with database.read() as db:
            gone = tables.list_seqs().difference(turns.all_seqs(db))
        if gone:
            tables.remove(sorted(gone))
            tables.scrub()
            with database.write() as db:
                meta.increment(db, meta.TURN_VECTORS_EPOCH)


def repair_turn_vectors(database: Database, table: VectorTable) -> int:
    """Queue turns that lack vectors of a model; return their number. Drop vectors of deleted turns and other models."""
    with database.read() as db:
        expected = turns.list_embedded_seqs(db)
        queued = turns.list_queued_seqs(db)
    if not (expected or table.exists()):
        return 0
    with table.exclusive():
        present = _list_present(table)
        gone = present.difference(expected)
        if gone:
            table.remove(sorted(gone))
            table.scrub()
        table.drop_others()
        if table.exists():
            table.compact()
            table.repair_codes()
    missing = sorted(expected - present - queued)
    with database.write() as db:
        work.add(db, missing, [Stage.EMBED_TURNS], time.time())
        if gone:
            meta.increment(db, meta.TURN_VECTORS_EPOCH)
    return len(missing)


def _list_present(table: VectorTable) -> set[int]:
    try:
        return table.seqs()
    except IndexUnavailable:
        # All its contents can be computed again.
        table.drop_broken()
        return set()
