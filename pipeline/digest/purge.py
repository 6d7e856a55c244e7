"""The purge stage: a hard-deleted memory leaves the derived indexes, the pages of the file, and its copies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pipeline.index.vectors import VectorTable
from pipeline.records.digestion import WorkItem
from pipeline.store import index_state, meta, work
from pipeline.store.database import Database


@dataclass(frozen=True, slots=True)
class PurgeStage:
    """Scrub purged memories from one workspace's indexes and from the copies of its store."""

    database: Database
    table: Callable[[], VectorTable]
    rebuild_segment: Callable[[], object]
    scrub_snapshots: Callable[[], object] = field(default=lambda: None)

    def load(self) -> None:
        """Need nothing."""

    def run(self, items: Sequence[WorkItem], owner: str) -> None:
        """Rewrite every derived file that may still hold the memories, then complete."""
        table = self.table()
        with table.exclusive():
            table.remove([item.seq for item in items])
            table.scrub()
            # Of a model that is on its way out too.
            table.drop_others()
        self.rebuild_segment()
        with self.database.write() as db:
            index_state.serve(db, table.model)
            meta.increment(db, meta.VECTORS_EPOCH)
        # Before the log is emptied: a copy that is being made reads from it, and this waits for its end.
        self.scrub_snapshots()
        # The write-ahead log still holds the text: who sees the work done must find no trace in it either.
        self.database.checkpoint()
        with self.database.write() as db:
            work.complete(db, items, owner)
