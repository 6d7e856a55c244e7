"""Rerank the first results with a cross-encoder, which reads the query and a memory together."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pipeline.errors import EncoderUnavailable
from pipeline.index.row_arrays import Floats
from pipeline.recall.escalation import Attempt, EscalationStep, OutOfTime
from pipeline.recall.first_pass import RankedPool
from pipeline.recall.rank import rank
from pipeline.records.recall import Step
from pipeline.store import memories
from pipeline.text.memory_terms import embedded_text

RERANKED = 30
# 30 results of 20 words with a model of two layers (decision 0050).
PRIOR_MS = 100.0


def rerank(attempt: Attempt) -> RankedPool:
    """Rank again with the cross-encoder's scores of the first results."""
    ranking = attempt.ranked.ranking
    positions = ranking.order[:RERANKED]
    scores = _score(attempt, ranking.evidence.seqs[positions].tolist())
    reranked = np.zeros(len(ranking.evidence.seqs), np.float32)
    reranked[positions] = _scale(scores)
    return replace(attempt.ranked, ranking=rank(replace(ranking.evidence, reranked=reranked)))


def _score(attempt: Attempt, seqs: Sequence[int]) -> Floats:
    if attempt.context.reranker is None:
        raise EncoderUnavailable("no reranker is configured")
    reranker = attempt.context.reranker()
    stored = memories.by_seqs(attempt.db, seqs)
    texts = [embedded_text(stored[seq]) if seq in stored else "" for seq in seqs]
    scores: list[float] = []
    for score in reranker.score(attempt.query.text, texts):
        scores.append(score)
        if attempt.deadline.remaining_s <= 0 and len(scores) < len(texts):
            raise OutOfTime
    return np.array(scores, np.float32)


def _scale(scores: Floats) -> Floats:
    """Scale scores to 0 for the lowest and 1 for the highest: models give probabilities or unbounded logits."""
    low, high = scores.min(initial=np.inf), scores.max(initial=-np.inf)
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)


RERANKING = EscalationStep(
    Step.RERANKER,
    applies=lambda attempt: attempt.context.reranker is not None and len(attempt.ranked.ranking.order) > 1,
    run=rerank,
    prior_ms=PRIOR_MS,
    # The relevance of the first pass does not show whether its order is right.
    always=True,
)
