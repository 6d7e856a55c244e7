"""Keep quiet when nothing is relevant.

Fused scores are relative to the best hit, so they cannot tell a good answer from the least bad one. The gates look at
evidence on an absolute scale: the cosine between question and memory, and the share of the question's information
(summed idf) that the memory's words cover.
"""

from collections.abc import Sequence

from pipeline.recall.query import Channel, Hit

CLOSE_COSINE = 0.42
SUPPORTED_COSINE = 0.30
COVERED = 0.35
WELL_COVERED = 0.6


def relevant(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits that are about the question, in their order."""
    return [hit for hit in hits if _is_relevant(hit)]


def _is_relevant(hit: Hit) -> bool:
    if hit.signals is None:
        return False
    dense = hit.signals.channels.get(Channel.DENSE)
    cosine = 0.0 if dense is None else dense.score
    coverage = hit.signals.coverage
    return cosine >= CLOSE_COSINE or coverage >= WELL_COVERED or (cosine >= SUPPORTED_COSINE and coverage >= COVERED)
