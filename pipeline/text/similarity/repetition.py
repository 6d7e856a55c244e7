"""Tell whether a statement says no more than another one."""

from functools import lru_cache
from typing import Final

from pipeline.text.similarity.pair_classifier import MERGE_COSINE, Relation, classify_pair
from pipeline.text.tokens import search_tokens

# A longer text says more than one statement.
MAX_CHARS: Final = 600
# The share of a statement's words that the other must contain before both are compared closely.
LEAST_SHARED: Final = 0.7
_CONTAINED: Final = ("one contains more",)


def is_repeated(statement: str, other: str) -> bool:
    """Return whether another statement says the same, or the same and more."""
    if max(len(statement), len(other)) > MAX_CHARS:
        return False
    words, others = _words_of(statement), _words_of(other)
    if not words or len(words & others) < LEAST_SHARED * len(words):
        return False
    judgement = classify_pair(statement, other, MERGE_COSINE)
    return judgement.relation is Relation.SAME or (judgement.reasons == _CONTAINED and words <= others)


@lru_cache(maxsize=4000)
def _words_of(text: str) -> frozenset[str]:
    return frozenset(search_tokens(text))
