"""Rerank the first results with a cross-encoder, which reads the query and a memory together.

It runs if a reranker is configured and its measured cost fits the time left. The answer reports whether it ran.
"""

from collections.abc import Sequence
from dataclasses import replace
from sqlite3 import Connection

import numpy as np

from pipeline.index.row_arrays import Floats
from pipeline.kernel.errors import EncoderUnavailable
from pipeline.kernel.records.recall import ChannelReport, ChannelState, Query, Step
from pipeline.kernel.store import memories
from pipeline.recall.deadline import Deadline
from pipeline.recall.first_pass import RankedPool
from pipeline.recall.rank import rank
from pipeline.recall.search_context import SearchContext
from pipeline.text.memory_terms import embedded_text

RERANKED = 30
# The estimated cost before the first run: 30 results of 20 words with a model of two layers (decision 0050).
PRIOR_MS = 100.0


class OutOfTime(Exception):
    """Report that reranking stopped at the deadline; its work is discarded."""


def rerank_in_time(
    context: SearchContext, db: Connection, query: Query, deadline: Deadline, ranked: RankedPool
) -> tuple[RankedPool, dict[str, ChannelReport]]:
    """Return the reranked pool and a report; the pool as it is where no reranker is needed, fits or works."""
    if context.reranker is None or len(ranked.ranking.order) < 2:
        return ranked, {}
    if not deadline.allows(context.costs.estimate_ms(Step.RERANKER, PRIOR_MS)):
        context.costs.shrink(Step.RERANKER)
        return ranked, {Step.RERANKER: ChannelReport(ChannelState.LATE, 0.0)}
    began_ms, state = deadline.elapsed_ms, ChannelState.OK
    try:
        ranked = _rerank(context, db, query, deadline, ranked)
    except OutOfTime:
        state = ChannelState.LATE
    except EncoderUnavailable:
        state = ChannelState.COLD
    except Exception as error:  # noqa: BLE001 - a failed step costs its improvement, never the answer
        context.on_error(Step.RERANKER, error)
        state = ChannelState.COLD
    took_ms = round(deadline.elapsed_ms - began_ms, 2)
    if state is not ChannelState.COLD:
        context.costs.record(Step.RERANKER, took_ms)
    return ranked, {Step.RERANKER: ChannelReport(state, took_ms)}


def _rerank(context: SearchContext, db: Connection, query: Query, deadline: Deadline, ranked: RankedPool) -> RankedPool:
    """Rank again with the cross-encoder's scores of the first results."""
    assert context.reranker is not None
    evidence = ranked.ranking.evidence
    positions = ranked.ranking.order[:RERANKED]
    seqs = evidence.seqs[positions].tolist()
    stored = memories.by_seqs(db, seqs)
    texts = [embedded_text(stored[seq]) if seq in stored else "" for seq in seqs]
    scores: list[float] = []
    for score in context.reranker().score(query.text, texts):
        scores.append(score)
        if deadline.remaining_s <= 0 and len(scores) < len(texts):
            raise OutOfTime
    reranked = np.zeros(len(evidence.seqs), np.float32)
    reranked[positions] = _scale(scores)
    return replace(ranked, ranking=rank(replace(evidence, reranked=reranked)))


def _scale(values: Sequence[float]) -> Floats:
    """Scale scores to 0 for the lowest and 1 for the highest: models give probabilities or unbounded logits."""
    scores = np.array(values, np.float32)
    low, high = scores.min(initial=np.inf), scores.max(initial=-np.inf)
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)
