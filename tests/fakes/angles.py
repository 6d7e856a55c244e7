import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.features.dedup.stage import DedupStage
from pipeline.features.indexing.stage import EmbedStage
from pipeline.index.dense import DenseIndex
from pipeline.index.encoder import Vectors
from pipeline.index.vectors import VectorTable
from pipeline.kernel.records import Draft, Memory, Stage
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.records.digestion import Passage, WorkItem
from pipeline.kernel.store import audit, duplicates, history, memories, work
from pipeline.kernel.store.database import Database
from pipeline.write.accept import accept
from tests.fakes.in_process import folder_of

_FOREVER_S = 1e9
_OPEN = WritePolicy()


class AngleEncoder:
    """A text, or each of its lines, points where a test says: two passages are as alike as their angles are close."""

    name = "angles"
    dimension = 8

    def __init__(self) -> None:
        self.angles: dict[str, float] = {}
        self.background = np.empty((0, self.dimension), np.float32)

    def point(self, text: str, cosine: float) -> None:
        """Let a passage have this cosine to those for which nothing was said."""
        self.angles[text] = math.acos(cosine)

    def encode_query(self, text: str) -> Vectors:
        angle = self.angles.get(text, 0.0)
        vector = np.zeros(self.dimension, np.float32)
        vector[:2] = math.cos(angle), math.sin(angle)
        return vector

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        return np.array([self.encode_query(text) for text in texts], np.float32).reshape(len(texts), self.dimension)

    def passages(self, text: str) -> list[Passage]:
        return [Passage(number, 0, len(line), line) for number, line in enumerate(text.split("\n"))]


class DedupStore:
    """One workspace whose memories are embedded at chosen angles and compared when a test says so."""

    def __init__(self, database: Database, exact_rows: int = 10_000) -> None:
        self.database = database
        self.encoder = AngleEncoder()
        table = VectorTable(folder_of(database) / "vectors.lance", self.encoder.name, self.encoder.dimension)
        self.dense = DenseIndex(table, exact_rows, self.encoder.background)
        self.embedding = EmbedStage(database, lambda _encoder: table, lambda: self.encoder)
        self.stage = DedupStage(database, lambda: table, lambda: self.dense)

    def write(self, content: str, cosine: float = 1.0, *, policy: WritePolicy = _OPEN, **fields: Any) -> str:
        """Write a memory whose text has this cosine to those at 1."""
        self.encoder.point(content, cosine)
        return accept(self.database, Draft(content, **fields), policy).id

    def embed(self) -> None:
        if items := self.claim(Stage.EMBED):
            self.embedding.run(items, "test")

    def claim(self, stage: Stage, owner: str = "test") -> list[WorkItem]:
        with self.database.write() as db:
            return work.claim(db, stage, owner, limit=1000, lease_s=_FOREVER_S, now=_FOREVER_S * 10)

    def digest(self, *, newest_first: bool = False) -> None:
        """Embed and compare what waits."""
        self.embed()
        items = self.claim(Stage.DEDUP)
        for item in reversed(items) if newest_first else items:
            self.stage.run([item], "test")

    def digest_again(self) -> None:
        """Compare everything once more."""
        with self.database.write() as db:
            work.add(db, memories.all_seqs(db), [Stage.DEDUP], 0.0)
        self.digest()

    def get(self, memory_id: str) -> Memory:
        with self.database.read() as db:
            memory = memories.get(db, memory_id)
        assert memory is not None
        return memory

    def active(self) -> set[str]:
        with self.database.read() as db:
            return {row[0] for row in db.execute("SELECT id FROM memory WHERE archived_at IS NULL")}

    def pairs(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """List (older, newer, reasons) of the pairs that wait."""
        with self.database.read() as db:
            rows = db.execute("SELECT id FROM pair WHERE state = 'waiting' ORDER BY seq").fetchall()
            found = [pair for (pair_id,) in rows if (pair := duplicates.get(db, pair_id)) is not None]
            named = memories.by_seqs(db, {seq for pair in found for seq in (pair.older_seq, pair.newer_seq)})
        return [(named[pair.older_seq].id, named[pair.newer_seq].id, pair.reasons) for pair in found]

    def merges(self) -> list[tuple[str, str | None]]:
        """List (absorbed, survivor) of the audit trail, oldest first."""
        with self.database.read() as db:
            return [(entry.memory_id, entry.other_id) for entry in reversed(audit.page(db, 1000, None))]

    def edges(self) -> list[tuple[str, str, str]]:
        """List the edges as (from, kind, to)."""
        with self.database.read() as db:
            return db.execute(
                "SELECT a.id, e.kind, b.id FROM edge e JOIN memory a ON a.seq = e.from_seq "
                "JOIN memory b ON b.seq = e.to_seq ORDER BY e.from_seq, e.kind, e.to_seq"
            ).fetchall()

    def list_history(self, memory_id: str) -> list[tuple[str, str | None]]:
        """List (event, text) of a memory's history."""
        with self.database.read() as db:
            return [(entry.event, entry.content) for entry in history.of(db, self.get(memory_id).seq)]

    def state(self) -> list[tuple[Any, ...]]:
        """Return everything that comparing may change."""
        tables = ("memory", "pair", "edge", "audit", "history", "change")
        with self.database.read() as db:
            return [row for table in tables for row in db.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3")]

    def close(self) -> None:
        self.dense.close()
