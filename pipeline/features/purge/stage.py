"""The purge stage: remove a deleted memory from every file that may still contain it. Needs no encoder."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from config.steps import reached
from pipeline.kernel.records.digestion import WorkItem
from pipeline.kernel.store import meta, purges, work
from pipeline.kernel.store.database import Database


class VectorFiles(Protocol):
    """Files of vectors, from which memories can be erased."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Exclude every other writer."""

    def remove(self, seqs: Sequence[int]) -> None:
        """Delete the passages of memories; the caller has the lock."""

    def scrub(self) -> None:
        """Rewrite the files so that none contains a deleted vector; the caller has the lock."""


@dataclass(frozen=True, slots=True)
class PurgeStage:
    """Remove purged memories from a workspace's indexes, from copies of its store, and from other files.

    `finish_elsewhere` erases data outside of the workspace, and returns the keys of the purges that it finished.
    """

    database: Database
    vectors: Callable[[], VectorFiles]
    rebuild_segment: Callable[[], object]
    scrub_snapshots: Callable[[], object] = field(default=lambda: None)
    finish_elsewhere: Callable[[], Iterable[str]] = field(default=tuple)
    erase_turns: Callable[[], object] = field(default=lambda: None)

    def load(self) -> None:
        """Do nothing: no model is needed."""

    def run(self, items: Sequence[WorkItem], owner: str) -> None:
        """Rewrite every derived file that may still contain the memories, then complete."""
        vectors = self.vectors()
        with vectors.exclusive():
            vectors.remove([item.seq for item in items])
            vectors.scrub()
        reached("vectors purged")
        self.erase_turns()
        self.rebuild_segment()
        reached("segments purged")
        finished = self.finish_elsewhere()
        reached("quotations purged")
        with self.database.write() as db:
            meta.increment(db, meta.VECTORS_EPOCH)
            # Delete the purge records before the log is emptied: they contain hashes of the texts.
            purges.remove(db, finished)
        # Before the log is emptied: a running copy reads from it, and this waits for the copy's end.
        self.scrub_snapshots()
        reached("snapshots purged")
        # The write-ahead log still contains the text: when the work is complete, it must be empty.
        self.database.erase_deleted_data()
        reached("log purged")
        with self.database.write() as db:
            work.complete(db, items, owner)
