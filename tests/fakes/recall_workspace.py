"""One workspace as recall reads it, whose segment and vectors are refreshed only when told."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.features.indexing.job import rebuild_segment
from pipeline.index.dense import DenseIndex
from pipeline.index.lexical import LexicalIndex
from pipeline.index.row_arrays import RankingFeatures, SessionMap
from pipeline.index.turn_index import TurnIndex
from pipeline.index.vectors import VectorTable
from pipeline.kernel.records import Draft, Filter
from pipeline.kernel.records.recall import Answer, Channel, MemoryExplanation, Query
from pipeline.kernel.store import index_state, memories, meta
from pipeline.kernel.store.database import Database
from pipeline.recall.answer_cache import AnswerCache
from pipeline.recall.channels import ChannelPool
from pipeline.recall.deadline import StepCosts
from pipeline.recall.search import explain_result, search
from pipeline.recall.search_context import DenseSearch, SearchContext
from pipeline.write.accept import accept
from tests.fakes.encoder import HashEncoder
from tests.fakes.in_process import folder_of, scratch_database

LONG_MS = 10_000


class RecallWorkspace:
    """A database, its indexes, and a reader over them."""

    def __init__(self, database: Database, exact_rows: int = 10_000) -> None:
        self.database = database
        self.lexical = folder_of(database) / "lexical"
        self.encoder = HashEncoder()
        self.table = VectorTable(folder_of(database) / "vectors.lance", "hash", self.encoder.dimension)
        self.dense = DenseIndex(self.table, exact_rows, self.encoder.background)
        self.errors: list[tuple[Channel, Exception]] = []
        self.channels = ChannelPool()
        sessions = SessionMap()
        self.reader = SearchContext(
            database,
            LexicalIndex(self.lexical, sessions),
            lambda _model: DenseSearch(self.encoder, self.dense),
            sessions,
            RankingFeatures(),
            self.channels,
            AnswerCache(),
            lambda channel, error: self.errors.append((channel, error)),
            TurnIndex.open(self.lexical / "turns", None, lambda error: self.errors.append((Channel.LEXICAL, error))),
            lambda _model: pytest.fail("no turn has a vector"),
            StepCosts(),
        )

    def write(self, content: str, **fields: Any) -> str:
        return accept(self.database, Draft(content, **fields)).id

    def fold(self) -> None:
        rebuild_segment(self.database, self.lexical)

    def embed(self) -> None:
        """Embed everything, archived or not, and never remove anything: the stalest index there can be."""
        with self.database.read() as db:
            rows = db.execute("SELECT seq, content FROM memory").fetchall()
            generation = meta.get_int(db, meta.VECTORS_GENERATION) + 1
        if not rows:
            return
        vectors = {
            seq: self.encoder.encode_documents([passage.text for passage in self.encoder.passages(content)])
            for seq, content in rows
        }
        with self.table.exclusive():
            self.table.replace(vectors)
        with self.database.write() as db:
            for seq, passages in vectors.items():
                index_state.note_embedding(db, seq, self.table.model, len(passages))
            meta.put(db, meta.VECTORS_GENERATION, str(generation))

    def ask(self, text: str, *, wanted: Filter | None = None, **fields: Any) -> Answer:
        return search(self.reader, Query(text, filter=wanted or Filter(), budget_ms=LONG_MS, **fields))

    def find_ids(self, text: str, **fields: Any) -> list[str]:
        return [hit.memory.id for hit in self.ask(text, **fields).hits]

    def why(
        self,
        text: str,
        memory_id: str,
        *,
        wanted: Filter | None = None,
        k: int = 10,
        min_relevance: float | None = None,
    ) -> MemoryExplanation:
        query = Query(text, k, wanted or Filter(), LONG_MS, min_relevance=min_relevance)
        return explain_result(self.reader, query, memory_id)

    def seq(self, memory_id: str) -> int:
        with self.database.read() as db:
            memory = memories.get(db, memory_id)
        assert memory is not None
        return memory.seq

    def close(self) -> None:
        self.channels.close()
        self.dense.close()


@contextlib.contextmanager
def open_recall_workspace(exact_rows: int = 10_000) -> Iterator[RecallWorkspace]:
    """Open a workspace that is gone afterwards."""
    with scratch_database() as database:
        workspace = RecallWorkspace(database, exact_rows)
        try:
            yield workspace
        finally:
            workspace.close()
