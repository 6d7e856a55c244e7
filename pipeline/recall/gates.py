"""Keep quiet when nothing is relevant.

Fused scores are relative to the best hit, so they cannot tell a good answer from the least bad one. The gate asks
three things that hold on their own: is the memory nearer to the question than everything that people say to any
assistant, does it share words that they seldom say, and does this workspace know the question's words at all. A
logistic regression turns the answers into a probability.
"""

import numpy as np

from pipeline.index.rows import Floats
from pipeline.recall.rank import Ranking

# Fitted to the calibration part of tests/data/messages.json by maximum likelihood, a message by its most probable hit.
INTERCEPT = -8.76
CLOSER_THAN_STRANGERS = 8.4
SHARED_INFORMATION = 2.63
FAMILIARITY = 5.56
RELEVANT = 0.5


def relevance(ranking: Ranking) -> Floats:
    """Return how probably each memory of the pool is about the question, 0 to 1."""
    evidence = ranking.evidence
    logit = (
        INTERCEPT
        + CLOSER_THAN_STRANGERS * (evidence.dense - evidence.strangers)
        + SHARED_INFORMATION * np.sqrt(evidence.information)
        + FAMILIARITY * evidence.familiarity
    )
    probability: Floats = (1 / (1 + np.exp(-logit))).astype(np.float32)
    return probability
