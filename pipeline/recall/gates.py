"""Keep quiet when nothing is relevant.

Fused scores are relative to the best hit, so they cannot tell a good answer from the least bad one. The gates look at
evidence on an absolute scale: the cosine between question and memory, and the share of the question's information
(summed idf) that the memory's words cover.
"""

from collections.abc import Sequence

from pipeline.analysis import search_tokens
from pipeline.recall.query import Channel, Hit

CLOSE_COSINE = 0.42
SUPPORTED_COSINE = 0.30
COVERED = 0.35
WELL_COVERED = 0.6
# One shared word covers all of "thanks!": words count as evidence from this many on.
FEWEST_TOKENS = 3


def relevant(text: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits that are about the text, in their order."""
    words_count = len(set(search_tokens(text))) >= FEWEST_TOKENS
    return [hit for hit in hits if _is_relevant(hit, words_count=words_count)]


def _is_relevant(hit: Hit, *, words_count: bool) -> bool:
    if hit.signals is None:
        return False
    dense = hit.signals.channels.get(Channel.DENSE)
    cosine = 0.0 if dense is None else dense.score
    coverage = hit.signals.coverage if words_count else 0.0
    return cosine >= CLOSE_COSINE or coverage >= WELL_COVERED or (cosine >= SUPPORTED_COSINE and coverage >= COVERED)
