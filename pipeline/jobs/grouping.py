"""Which of some memories belong together: how alike each is to the others, by vectors or, without them, by words."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import IndexUnavailable
from pipeline.index.vectors import VectorTable
from pipeline.records import Memory
from pipeline.text.tokens import search_tokens

Likeness = NDArray[np.float64]
Tables = Callable[[], VectorTable]

# The mean likeness to all others from which a memory is one of a group. Of eight memories picked at random from the
# labelled data sets, fewer than one set in a hundred holds five that are alike by vectors, and none by words; of the
# sessions, which have a topic each, a third and a tenth do. A shared subject is asked for besides.
ALIKE_BY_VECTORS = 0.30
ALIKE_BY_WORDS = 0.12


def likeness(memories: Sequence[Memory], about: str, tables: Tables | None) -> tuple[Likeness, float]:
    """Return how alike memories are (n × n, 0 for what is not embedded), and from where on they count as alike.

    That all of them are `about` one subject makes none of them more alike.
    """
    if tables is not None:
        try:
            return _by_vectors(memories, tables()), ALIKE_BY_VECTORS
        except IndexUnavailable:
            return _by_words(memories, about), ALIKE_BY_WORDS
    return _by_words(memories, about), ALIKE_BY_WORDS


def coherent(alike: Likeness, least: float, size: int) -> list[int]:
    """Return a group of at least so many in which each is alike to the others, [] if there is none; by place."""
    group = list(range(len(alike)))
    while len(group) >= size:
        means = _means(alike, group, group)
        worst = int(np.argmin(means))
        if means[worst] >= least:
            return joined(alike, least, group)
        del group[worst]
    return []


def joined(alike: Likeness, least: float, group: Sequence[int]) -> list[int]:
    """Return a group with all that is alike to it, the most alike first, until nothing is any more."""
    found = list(group)
    while True:
        others = [place for place in range(len(alike)) if place not in found]
        if not others:
            return sorted(found)
        means = _means(alike, others, found)
        best = int(np.argmax(means))
        if means[best] < least:
            return sorted(found)
        found.append(others[best])


def _means(alike: Likeness, ones: Sequence[int], group: Sequence[int]) -> NDArray[np.float64]:
    """Return how alike each is to the group, itself aside."""
    part = alike[np.ix_(list(ones), list(group))]
    own = np.isin(list(ones), list(group))
    return np.asarray((part.sum(axis=1) - own * np.diag(alike)[list(ones)]) / np.maximum(len(group) - own, 1))


def _by_vectors(memories: Sequence[Memory], table: VectorTable) -> Likeness:
    rows = table.vectors([memory.seq for memory in memories])
    means = np.zeros((len(memories), table.dimension))
    for place, memory in enumerate(memories):
        passages = rows.matrix[rows.seqs == memory.seq]
        if len(passages):
            means[place] = passages.mean(axis=0)
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    units = np.divide(means, lengths, out=np.zeros_like(means), where=lengths > 0)
    alike: Likeness = units @ units.T
    return alike


def _by_words(memories: Sequence[Memory], about: str) -> Likeness:
    # No weights: those of rare words would change with what else is looked at, and with them who belongs together.
    known = frozenset(search_tokens(about))
    tokens = [frozenset(search_tokens(memory.content)) - known for memory in memories]
    alike = np.eye(len(memories))
    for one, words in enumerate(tokens):
        for other in range(one):
            both = math.sqrt(len(words) * len(tokens[other])) or 1.0
            alike[one, other] = alike[other, one] = len(words & tokens[other]) / both
    return alike
