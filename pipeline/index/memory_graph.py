"""Links between memories, and Personalized PageRank along them.

Memories are linked by the rare words that they share: names, machines, tickets, symbols. The lexical segment is this
graph already, a sparse matrix of memories and words that a worker builds; here it is also kept by memory. Callers add
other links, such as stored edges. A walk visits only the neighborhood of its start (Andersen, Chung and Lang, Local
Graph Partitioning using PageRank Vectors, 2006), so its cost does not grow with the workspace.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.index.encoder import list_common_words
from pipeline.index.lexical import Corpus
from pipeline.index.row_arrays import NO_ROWS, Floats, Seqs, values_at
from pipeline.index.segment import Segment, idf
from pipeline.text.tokens import MONTHS, WEEKDAYS, search_tokens

# A word in more memories than this is no link.
MOST_HOLDERS = 40
# The probability of each further step, from a memory to a link or back; otherwise, the walk starts again.
DAMPING = 0.5
# From a memory to a link to a memory: a fact about a fact about what the question names.
HOPS = 2
# The memories that a hop starts from, the most visited first.
MOST_VISITED = 8

# The index also contains the day of each memory: memories of one day are not linked by that.
DAY_WORDS = frozenset(
    [*search_tokens(" ".join((*WEEKDAYS, *MONTHS))), *map(str, range(1, 32)), *map(str, range(1900, 2100))]
)

# The weight of a word is multiplied by this power of its rarity in general messages: names lead further than "switch".
RARITY_POWER = 4

Mass = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Links:
    """Pairs of a link, numbered from 0, and a memory that has it; `weights` has a weight for each link."""

    numbers: Seqs
    memories: Seqs
    weights: Floats


# Returns the links of some memories, each with all its memories.
FindLinks = Callable[[Seqs], Links]


def join_links(parts: Sequence[Links]) -> Links:
    """Return all links; equal numbers in different parts are different links."""
    firsts = np.cumsum([0, *(len(part.weights) for part in parts)])
    return Links(
        np.concatenate([part.numbers + first for part, first in zip(parts, firsts, strict=False)]),
        np.concatenate([part.memories for part in parts]),
        np.concatenate([part.weights for part in parts]),
    )


def weigh_links(numbers: Seqs, memories: Seqs, links: int, count: int) -> Links:
    """Weigh a number of links by their rarity among a number of memories.

    A link between none or too many memories has no weight.
    """
    sizes = np.bincount(numbers, minlength=links)
    is_link = (sizes > 1) & (sizes <= MOST_HOLDERS)
    kept = is_link[numbers]
    weights = np.where(is_link, _weights_by_size(count)[np.where(is_link, sizes, 0)], 0).astype(np.float32)
    return Links(numbers[kept], memories[kept], weights)


@lru_cache(maxsize=64)
def _weights_by_size(count: int) -> Floats:
    return np.array([idf(max(count, size), size) for size in range(MOST_HOLDERS + 1)], np.float32)


@dataclass(frozen=True, slots=True)
class Visited:
    """The memories that a walk visits, in row order, and how often, by each of its starts: shape (starts, memories)."""

    memories: Seqs
    mass: Mass


def walk(find_links: FindLinks, starts: Seqs, shares: Floats, hops: int = HOPS, limit: int = MOST_VISITED) -> Visited:
    """Return the memories that a random walk with restart visits, its starts included.

    `starts` are different memories in row order; `shares` are the probabilities to start at each. From a memory the
    walk takes a link by its weight, from a link any of its memories. Each hop continues from the `limit` memories
    that the last one visited most.
    """
    reached = Visited(starts, np.diag(shares.astype(np.float64)))
    moves = [reached]
    for _ in range(hops):
        most = np.sort(np.argsort(-reached.mass.sum(axis=0), kind="stable")[:limit])
        memories = reached.memories[most]
        reached = spread(find_links(memories), memories, reached.mass[:, most])
        moves.append(reached)
    visited = np.unique(np.concatenate([moved.memories for moved in moves]))
    total = np.zeros((len(starts), len(visited)))
    for hop, moved in enumerate(moves):
        total[:, np.searchsorted(visited, moved.memories)] += moved.mass * DAMPING ** (2 * hop)
    return Visited(visited, total)


def spread(links: Links, memories: Seqs, mass: Mass) -> Visited:
    """Move the mass of memories, in row order, along their links; return the memories that get some of it.

    Its arrays are as long as the links: those of a step do not grow with the workspace.
    """
    count = len(links.weights)
    if not len(links.memories) or not len(memories):
        return Visited(NO_ROWS, np.zeros((len(mass), 0)))
    at = np.searchsorted(memories, links.memories).clip(max=len(memories) - 1)
    leaves = memories[at] == links.memories
    at, numbers = at[leaves], links.numbers[leaves]
    weights = links.weights[numbers]
    shares = weights / np.maximum(np.bincount(at, weights, len(memories)), 1e-9)[at]
    sizes = np.maximum(np.bincount(links.numbers, minlength=count), 1)
    on_links = (np.bincount(numbers, row[at] * shares, count) / sizes for row in mass)
    reached, position = np.unique(links.memories, return_inverse=True)
    moved = np.array([np.bincount(position, values[links.numbers], len(reached)) for values in on_links])
    gets_some = moved.any(axis=0)
    return Visited(reached[gets_some], moved[:, gets_some])


@dataclass(frozen=True, slots=True)
class SparseRows:
    """A sparse matrix of ones by row: the columns of row n are values[starts[n]:starts[n + 1]]."""

    starts: Seqs
    values: NDArray[np.int32]

    @classmethod
    def of(cls, rows: NDArray[Any], columns: NDArray[Any], count: int) -> "SparseRows":
        """Sort pairs of a row and a column."""
        order = np.argsort(rows, kind="stable")
        starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=count))))
        return cls(starts, columns[order].astype(np.int32))

    def list_pairs(self, rows: Seqs) -> tuple[Seqs, Seqs]:
        """Return a position in `rows`, which ascend, and a column for each pair; rows beyond the matrix have none."""
        if not len(self.values):
            return NO_ROWS, NO_ROWS
        rows = rows[: np.searchsorted(rows, len(self.starts) - 1)]
        first, counts = self.starts[rows], self.starts[rows + 1] - self.starts[rows]
        at = np.repeat(np.arange(len(rows)), counts)
        ends = np.cumsum(counts)
        return at, self.values[np.arange(len(at)) + (first - ends + counts)[at]].astype(np.int64)


@dataclass(frozen=True, slots=True)
class SharedWords:
    """The words of memories, by memory and by word."""

    by_memory: SparseRows
    by_word: SparseRows
    factors: Floats

    @classmethod
    def of(cls, words: Seqs, seqs: Seqs, factors: Floats) -> "SharedWords":
        """Keep the words that can be links, of pairs of a word and a memory; `factors` are 0 for the others."""
        word_count = len(factors)
        kept = ((np.bincount(words, minlength=word_count) <= MOST_HOLDERS) & (factors > 0))[words]
        words, seqs = words[kept], seqs[kept]
        size = int(seqs.max(initial=-1)) + 1
        return cls(SparseRows.of(seqs, words, size), SparseRows.of(words, seqs, word_count), factors)


@dataclass(frozen=True, slots=True)
class WordGraph:
    """The words of a corpus: those of its segment and, with further numbers, those of its tail."""

    corpus: Corpus
    segment: SharedWords
    tail: SharedWords
    tail_numbers: Mapping[str, int]

    def find_links(self, memories: Seqs, excluded: Collection[int], allowed: NDArray[np.bool_]) -> Links:
        """Return the rare words of memories, and all allowed memories with them."""
        has_tail = bool(self.corpus.fresh.any())
        unchanged = memories[~values_at(self.corpus.fresh, memories)] if has_tail else memories
        _, of_segment = self.segment.by_memory.list_pairs(unchanged)
        _, of_tail = self.tail.by_memory.list_pairs(memories)
        shared = np.zeros(len(self.tail.factors), np.bool_)
        shared[of_segment] = shared[of_tail] = True
        shared[np.fromiter(excluded, np.int64, len(excluded))] = False
        words = np.flatnonzero(shared)
        numbers, seqs = self.segment.by_word.list_pairs(words)
        if has_tail:
            new_at, new = self.tail.by_word.list_pairs(words)
            # An edited memory is in the segment with its old text.
            current = ~values_at(self.corpus.fresh, seqs)
            numbers, seqs = np.concatenate((numbers[current], new_at)), np.concatenate((seqs[current], new))
        visible = values_at(allowed, seqs).astype(np.bool_)
        links = weigh_links(numbers[visible], seqs[visible], len(words), self.corpus.count)
        return replace(links, weights=links.weights * self.tail.factors[words])

    def list_numbers(self, terms: Collection[str]) -> list[int]:
        """Return the numbers of words, without those of no memory."""
        known: Mapping[str, int] = self.corpus.segment.words.vocab_dict
        numbers = (known.get(term, self.tail_numbers.get(term)) for term in terms)
        return [number for number in numbers if number is not None]


class WordGraphs:
    """Keep the graph of the last corpus of a workspace; its part of the segment is built once for each segment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._segment: tuple[Segment, SharedWords] | None = None
        self._graph: WordGraph | None = None

    def of(self, corpus: Corpus) -> WordGraph:
        """Return the graph of a corpus."""
        with self._lock:
            if self._graph is None or self._graph.corpus is not corpus:
                if self._segment is None or self._segment[0] is not corpus.segment:
                    self._segment = corpus.segment, _index_segment(corpus.segment)
                self._graph = _index_tail(corpus, self._segment[1])
            return self._graph


def _index_segment(segment: Segment) -> SharedWords:
    counted = segment.counted
    count = len(counted.starts) - 1
    words = np.repeat(np.arange(count, dtype=np.int64), np.diff(counted.starts))
    # An empty segment has one text without a row number.
    known = counted.texts < len(segment.rows)
    return SharedWords.of(words[known], segment.rows[counted.texts[known]], _weigh_words(counted.vocabulary, count))


def _index_tail(corpus: Corpus, segment: SharedWords) -> WordGraph:
    known: Mapping[str, int] = corpus.segment.words.vocab_dict
    first = len(segment.by_word.starts) - 1
    added: dict[str, int] = {}
    columns = corpus.list_tail_words()
    numbers = [known[term] if term in known else added.setdefault(term, first + len(added)) for term, _ in columns]
    words = np.repeat(np.array(numbers, np.int64), [len(seqs) for _, seqs in columns])
    seqs = np.concatenate([NO_ROWS, *(seqs for _, seqs in columns)])
    rare = values_at(np.diff(corpus.segment.counted.starts), words) <= MOST_HOLDERS
    factors = np.concatenate(
        (segment.factors, _weigh_words({term: n - first for term, n in added.items()}, len(added)))
    )
    return WordGraph(corpus, segment, SharedWords.of(words[rare], seqs[rare], factors), added)


def _weigh_words(numbers: Mapping[str, int], count: int) -> Floats:
    factors = np.ones(count, np.float32)
    for word, value in [*list_common_words().items(), *((day, 0.0) for day in DAY_WORDS)]:
        if word in numbers:
            factors[numbers[word]] = value**RARITY_POWER
    return factors
