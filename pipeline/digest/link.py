"""The entities stage: what a memory names is linked to it, and to what else it names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.digest.entities import Tagger, extract_batch
from pipeline.records import WorkItem
from pipeline.store import entities, memories, work
from pipeline.store.database import Database

# Linking takes many statements: a write of the front waits for a few memories, not for a whole batch.
PER_TRANSACTION = 4


@dataclass(frozen=True, slots=True)
class EntitiesStage:
    """Link the entities of one workspace's memories."""

    database: Database
    tagger: Callable[[], Tagger]

    def load(self) -> None:
        """Load the tagger."""
        self.tagger()

    def run(self, items: Sequence[WorkItem], owner: str) -> None:
        """Extract entities, then link and complete, a few memories a transaction."""
        with self.database.read() as db:
            found = memories.by_seqs(db, [item.seq for item in items])
        mentions = dict(
            zip(
                found,
                extract_batch([memory.content for memory in found.values()], self.tagger()),
                strict=True,
            )
        )
        for start in range(0, len(items), PER_TRANSACTION):
            with self.database.write() as db:
                for item in work.complete(db, items[start : start + PER_TRANSACTION], owner):
                    if item.seq in mentions:
                        entities.link(db, item.seq, mentions[item.seq])
