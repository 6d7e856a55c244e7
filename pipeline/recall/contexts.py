"""What recall reads of each workspace, for the workspaces that were used last."""

import threading
from collections.abc import Callable
from functools import partial

from config.paths import WorkspacePaths
from pipeline.index.dense import DenseIndex
from pipeline.index.encoder import Encoder
from pipeline.index.encoders import usual_model
from pipeline.index.lexical import LexicalIndex
from pipeline.index.reranker import Reranker
from pipeline.index.row_arrays import RankingFeatures, SessionMap
from pipeline.index.storage import shared_segments, shared_turn_segments, turn_vector_table, vector_table
from pipeline.index.turn_index import TurnIndex
from pipeline.index.vectors import VectorTable
from pipeline.kernel.lru import LruCache
from pipeline.kernel.records.recall import Channel, Step
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.objects import ObjectStorage
from pipeline.kernel.workspace import Workspace
from pipeline.recall.answer_cache import AnswerCache
from pipeline.recall.channels import ChannelPool
from pipeline.recall.deadline import StepCosts
from pipeline.recall.graph import GraphSearch
from pipeline.recall.intent import QuestionIntents
from pipeline.recall.search_context import DenseSearch, SearchContext

# More workspaces than people work on at a time; of any other, the segment and the vectors are read again.
MOST_CONTEXTS = 16


OpenTable = Callable[[WorkspacePaths, Database, Encoder, ObjectStorage | None], VectorTable]


class SearchContexts:
    """Keep what recall reads of the workspaces that were asked last."""

    def __init__(
        self,
        encoder: Callable[[str], Encoder],
        exact_rows: int,
        report_error: Callable[[Workspace, Channel | Step, Exception], None],
        objects: ObjectStorage | None = None,
        reranker: Callable[[], Reranker] | None = None,
    ) -> None:
        self._encoder = encoder
        self._reranker = reranker
        self._costs = StepCosts()
        self._objects = objects
        self._exact_rows = exact_rows
        self._report_error = report_error
        self._channels = ChannelPool()
        self._kept: LruCache[str, SearchContext] = LruCache(MOST_CONTEXTS)
        self._counting = threading.Lock()
        self._intents: QuestionIntents | None = None
        self.answered = {"whole": 0, "degraded": 0}
        # Whether models that every first answer waits for are still loading.
        self.is_warming = False

    def get(self, workspace: Workspace) -> SearchContext:
        """Return what recall reads of a workspace; raise NotFound when it does not exist."""
        database = workspace.database
        return self._kept.get(
            workspace.id, lambda known: known.database is database, partial(self._make, workspace, database)
        )

    def is_cold(self, workspace: Workspace) -> bool:
        """Return whether a first answer still has to load models or the workspace's indexes."""
        return self.is_warming or (workspace.exists and self._kept.peek(workspace.id) is None)

    def count(self, *, degraded: bool) -> None:
        """Count an answer, complete or without a channel that should have answered."""
        with self._counting:
            self.answered["degraded" if degraded else "whole"] += 1

    def close(self) -> None:
        """End all threads."""
        self._channels.close()
        if self._intents is not None:
            self._intents.close()

    def _make(self, workspace: Workspace, database: Database) -> SearchContext:
        on_error = partial(self._report_error, workspace)

        sessions = SessionMap()
        return SearchContext(
            database,
            LexicalIndex(
                workspace.paths.lexical,
                sessions,
                shared_segments(workspace.paths, self._objects),
                partial(on_error, Channel.LEXICAL),
            ),
            self._find_dense_search(workspace, vector_table),
            sessions,
            RankingFeatures(),
            self._channels,
            AnswerCache(),
            on_error,
            self._open_turns(workspace, partial(on_error, Channel.LEXICAL)),
            self._find_dense_search(workspace, turn_vector_table),
            self._costs,
            self._reranker,
            graph=GraphSearch(intents=self.find_intents(workspace)),
        )

    def _open_turns(self, workspace: Workspace, on_error: Callable[[Exception], None]) -> TurnIndex:
        shared = shared_turn_segments(workspace.paths, self._objects)
        return TurnIndex.open(workspace.paths.turn_segments, shared, on_error)

    def find_intents(self, workspace: Workspace) -> QuestionIntents:
        """Return the classifier of questions, which all workspaces of a process share."""
        with self._counting:
            if self._intents is None:
                self._intents = QuestionIntents(workspace.home_settings.paths.models / "intents")
            return self._intents

    def _find_dense_search(self, workspace: Workspace, open_table: OpenTable) -> Callable[[str | None], DenseSearch]:
        # A workspace's model changes once in its life, if ever.
        searches: LruCache[str, DenseSearch] = LruCache(1)

        def dense_search(model: str | None) -> DenseSearch:
            encoder = self._encoder(model or usual_model(workspace.home_settings))
            make = partial(self._make_dense, workspace, open_table, encoder)
            return searches.get(encoder.name, lambda known: known.encoder is encoder, make)

        return dense_search

    def _make_dense(self, workspace: Workspace, open_table: OpenTable, encoder: Encoder) -> DenseSearch:
        table = open_table(workspace.paths, workspace.database, encoder, self._objects)
        report = partial(self._report_error, workspace, Channel.DENSE)
        return DenseSearch(encoder, DenseIndex(table, self._exact_rows, encoder.background, report))
