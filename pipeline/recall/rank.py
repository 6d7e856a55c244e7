"""From evidence to one order, and to a probability that a memory is about the question at all.

Scores are relative to the best hit, so they cannot tell a good answer from the least bad one. Relevance asks three
things that hold on their own: is the memory nearer to the question than everything that people say to any assistant,
does it share words that they seldom say, and does this workspace know the question's words at all. A logistic
regression turns the answers into a probability.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.index.rows import Floats, Seqs
from pipeline.recall.features import FEATURES, CandidatePool, Evidence

# Fitted to the calibration part of tests/data/messages.json by maximum likelihood, a message by its most probable hit.
INTERCEPT = -8.76
CLOSER_THAN_BACKGROUND = 8.4
SHARED_INFORMATION = 2.63
VOCABULARY_COVERAGE = 5.56
RELEVANT = 0.5


@dataclass(frozen=True, slots=True)
class Ranking:
    """The pool's order, best first; `values` has a row for each feature."""

    pool: CandidatePool
    order: Seqs
    values: Floats
    score: Floats

    @property
    def evidence(self) -> Evidence:
        """Return the evidence that was ranked."""
        return self.pool.evidence

    @property
    def parts(self) -> Mapping[str, Floats]:
        """Return what each feature adds to the scores."""
        return {feature.name: feature.weight * row for feature, row in zip(FEATURES, self.values, strict=True)}


def rank(evidence: Evidence) -> Ranking:
    """Order the pool, best first; equal scores go to the newer memory."""
    pool = CandidatePool(evidence)
    values: Floats = np.array([feature.compute(pool) for feature in FEATURES], np.float32)
    weights = np.array([feature.weight for feature in FEATURES], np.float32)
    # Added up row by row: a matrix product may round equal columns differently, and equal scores go by age.
    score: Floats = (weights[:, None] * values).sum(axis=0)
    order = np.lexsort((-evidence.seqs, -score))
    return Ranking(pool, order, values, score)


def relevance(ranking: Ranking) -> Floats:
    """Return how probably each memory of the pool is about the question, 0 to 1."""
    evidence = ranking.evidence
    logit = (
        INTERCEPT
        + CLOSER_THAN_BACKGROUND * (evidence.dense - evidence.background_similarity)
        + SHARED_INFORMATION * np.sqrt(evidence.information)
        + VOCABULARY_COVERAGE * evidence.vocabulary_coverage
    )
    probability: Floats = (1 / (1 + np.exp(-logit))).astype(np.float32)
    return probability
