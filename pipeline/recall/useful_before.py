"""Memories that were useful before, for questions similar to this one.

Two questions are similar if they share most of their rare terms. The similarity does not depend on how often a memory
was useful: a memory that is always opened gains nothing for other questions, and nothing more for the same one.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import sqrt
from sqlite3 import Connection

from pipeline.index.rare_terms import weigh_rare_terms
from pipeline.records.recall import Query
from pipeline.store import useful_questions
from pipeline.store.useful_questions import SharedTerm

# Pairs of (row number, similarity), ordered by row number.
UsefulMemories = tuple[tuple[int, float], ...]

# Questions that share fewer of their rare terms are about different things; decision 0052.
LEAST_SIMILARITY = 0.4


def find_useful(db: Connection, query: Query) -> UsefulMemories:
    """Return the memories that were useful for similar questions of the caller, with the similarity, 0 to 1."""
    person = query.filter.viewer.person
    if not useful_questions.is_any(db, person):
        return ()
    terms = weigh_rare_terms(query.text)
    shared: dict[tuple[int, int], list[SharedTerm]] = defaultdict(list)
    for term in useful_questions.list_shared_terms(db, person, terms):
        shared[term.memory_seq, term.question].append(term)
    best: dict[int, float] = {}
    for (seq, _), parts in shared.items():
        similarity = _similarity(parts, [terms[part.term] for part in parts], sum(terms.values()))
        if similarity >= LEAST_SIMILARITY:
            best[seq] = max(best.get(seq, 0.0), similarity)
    return tuple(sorted(best.items()))


def _similarity(parts: Sequence[SharedTerm], weights: Sequence[float], total: float) -> float:
    """Return the geometric mean of the shares that both questions have in common, by rarity."""
    earlier = min(1.0, sum(part.share for part in parts))
    return sqrt(earlier * min(1.0, sum(weights) / total))
