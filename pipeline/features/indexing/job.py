"""Maintain the indexes of a workspace: build the lexical segment, repair and compact the vectors, rebuild both."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from filelock import FileLock

from config.operating_system import make_folder
from config.steps import reached
from pipeline.index.documents import MEMORIES, Documents
from pipeline.index.segment import Segment, load_segment, remove_segments, write_segment
from pipeline.index.storage import SharedSegments
from pipeline.index.vectors import AllTables, VectorTable
from pipeline.kernel.errors import IndexUnavailable
from pipeline.kernel.records import Stage
from pipeline.kernel.records.digestion import DIGESTION
from pipeline.kernel.store import index_state, memories, meta, runs, turns, work
from pipeline.kernel.store.database import Database, wake_on_commit
from pipeline.kernel.times import utc_now

_VECTORS = "vectors"


def needs_segment(database: Database, tail_rows: int, documents: Documents = MEMORIES) -> bool:
    """Tell whether the tail exceeds a number of rows, or a purge or a broken segment requires a new segment."""
    with database.read() as db:
        return documents.needs_segment(db, tail_rows)


def rebuild_segment(
    database: Database, folder: Path, shared: SharedSegments | None = None, documents: Documents = MEMORIES
) -> int:
    """Build a segment of every document and make it current; return its number of documents, 0 if not needed.

    The store names the current segment in the transaction that trims the tail, so that a reader sees either the old
    pair or the new pair. A shared segment is named only after its upload.
    """
    make_folder(folder)
    keys, load = documents.keys, partial(_load_segment, folder, shared)
    with FileLock(folder / "build.lock"):
        # Several workers may be sent for one segment: those that waited here find it already built.
        while needs_segment(database, 1, documents):
            with database.read() as db:
                before, request = meta.get(db, keys.name), meta.get(db, keys.wanted)
                covered = documents.generation(db)
                segment = documents.index(db, load)
            name = write_segment(folder, segment)
            reached("segment written")
            if shared is not None:
                shared.send(name)
            with database.write() as db:
                # Another machine may have been faster; the tail no longer contains the rows that its segment covers.
                is_named = meta.get(db, keys.name) == before
                if is_named:
                    meta.put(db, keys.name, name)
                    meta.put(db, keys.covers, str(covered))
                    documents.trim_tail(db, covered)
            reached("segment named")
            if is_named:
                remove_segments(folder, keep=name)
                reached("old segments removed")
                if shared is not None:
                    # A purged memory must not remain readable.
                    shared.remove_others(name, datetime.now(UTC), at_once=request is not None)
                _settle_request(database, keys.wanted, request)
                return len(segment.rows)
    return 0


def _settle_request(database: Database, key: str, request: str | None) -> None:
    """Delete the request for a segment, after which no run removes the old segments.

    A request that arrived during the run stays: the built segment contains its purged memory.
    """
    with database.write() as db:
        if meta.get(db, key) == request:
            meta.drop(db, key)


def _load_segment(folder: Path, shared: SharedSegments | None, name: str) -> Segment | None:
    try:
        return load_segment(folder, name) if shared is None else shared.load(name)
    except IndexUnavailable:
        # Every document is in the store.
        return None


def request_rebuild(database: Database) -> int:
    """Queue every memory to be embedded and linked again and request a new segment; return the number of memories.

    The old indexes are used until each part is replaced.
    """
    with database.write() as db:
        seqs = memories.all_seqs(db)
        for seq in seqs:
            index_state.forget_embedding(db, seq)
        meta.put(db, meta.SEGMENT_WANTED, "0")
        index_state.request_turn_segment(db, anew=True)
        wake_on_commit(db, None)
        meta.increment(db, meta.VECTORS_EPOCH)
        work.add(db, seqs, DIGESTION, time.time())
    return len(seqs)


def request_vectors(database: Database) -> None:
    """Request the job that queues what has no vectors."""
    with database.write() as db:
        if _VECTORS not in runs.list_requested(db):
            runs.request(db, _VECTORS, utc_now())


def compact_vectors(table: VectorTable) -> None:
    """Merge the fragments that appends have created."""
    with table.exclusive():
        table.compact()


def needs_compaction(table: VectorTable, fragments: int) -> bool:
    """Tell whether appends have created at least this many fragments."""
    return table.fragments() >= fragments


def repair_vectors(database: Database, table: VectorTable, log: Callable[[str], None]) -> int:
    """Queue memories whose vectors are missing or of another model; return their number. Drop vectors without a memory.

    Vectors of the model in use are kept until those of the table's own model are complete. A table that
    cannot be read is deleted: all its contents can be computed again.
    """
    with table.exclusive():
        present = _present(table, log)
        with database.read() as db:
            lost = [seq for seq in index_state.list_expected_passages(db, table.model) if seq not in present]
            missing = index_state.list_unembedded(db, table.model)
            serving = index_state.find_serving_model(db)
            gone = present.difference(memories.all_seqs(db))
            ever_embedded = meta.get_int(db, meta.VECTORS_GENERATION) > 0
        if gone:
            # A restored store may contain fewer memories than the index.
            table.remove(sorted(gone))
            table.scrub()
            with database.write() as db:
                meta.increment(db, meta.VECTORS_EPOCH)
        if serving not in (None, table.model):
            # The last memory with vectors of only the other model may have been deleted.
            with database.write() as db:
                index_state.serve_when_whole(db, table.model)
                serving = index_state.find_serving_model(db)
        table.drop_others(keep=serving)
        if ever_embedded and table.repair_codes():
            with database.write() as db:
                meta.increment(db, meta.VECTORS_EPOCH)
        if not lost and not missing:
            return 0
        if lost:
            log(f"the vectors of {len(lost)} memories were lost and will be computed again")
        with database.write() as db:
            for seq in lost:
                index_state.forget_embedding(db, seq)
            meta.increment(db, meta.VECTORS_EPOCH)
            work.add(db, {*lost, *missing}, [Stage.EMBED], time.time())
    return len({*lost, *missing})


def _present(table: VectorTable, log: Callable[[str], None] = lambda _: None) -> set[int]:
    # Counting would only read the manifest. Reading a column opens every file and detects a truncated one.
    try:
        return table.seqs()
    except IndexUnavailable as error:
        log(f"the vector index was damaged and will be rebuilt: {error}")
    table.drop_broken()
    return set()


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
        present = _present(table)
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
