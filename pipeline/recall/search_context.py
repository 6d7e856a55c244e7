"""The indexes and caches of a workspace that recall reads."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pipeline.index.dense import DenseIndex
from pipeline.index.encoder import Encoder
from pipeline.index.lexical import LexicalIndex
from pipeline.index.reranker import Reranker
from pipeline.index.row_arrays import RankingFeatures, SessionMap
from pipeline.index.turn_index import TurnIndex
from pipeline.kernel.store.database import Database
from pipeline.recall.answer_cache import AnswerCache
from pipeline.recall.channels import ChannelPool, ErrorSink
from pipeline.recall.deadline import StepCosts
from pipeline.recall.expansion import WorkspaceBridges
from pipeline.recall.graph import GraphSearch


@dataclass(frozen=True, slots=True)
class DenseSearch:
    """An encoder of queries, and the index of the memories that its model embedded."""

    encoder: Encoder
    index: DenseIndex


@dataclass(frozen=True, slots=True)
class SearchContext:
    """Everything that recall reads of a workspace."""

    database: Database
    lexical: LexicalIndex
    # The model's name, None before the first embedding.
    dense: Callable[[str | None], DenseSearch]
    sessions: SessionMap
    ranking_features: RankingFeatures
    channels: ChannelPool
    answers: AnswerCache
    on_error: ErrorSink
    turns: TurnIndex
    # The model's name.
    turn_dense: Callable[[str], DenseSearch]
    costs: StepCosts
    # None if no reranker is configured; raises EncoderUnavailable until it is loaded.
    reranker: Callable[[], Reranker] | None = None
    bridges: WorkspaceBridges = field(default_factory=WorkspaceBridges)
    graph: GraphSearch = field(default_factory=GraphSearch)
