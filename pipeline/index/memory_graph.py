"""Links between memories, and Personalized PageRank along them.

Memories are linked by the rare words that they share: names, machines, tickets, symbols. The lexical segment is this
graph already, a sparse matrix of memories and words that a worker builds; here it is also kept by memory. Callers add
other links, such as stored edges. A walk visits only the neighborhood of its start (Andersen, Chung and Lang, Local
Graph Partitioning using PageRank Vectors, 2006), so its cost does not grow with the workspace.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.index.lexical import Corpus
from pipeline.index.row_arrays import NO_ROWS, Floats, Seqs, values_at
from pipeline.index.segment import Segment, idf

# A word in more memories than this is no link.
MOST_HOLDERS = 40
# The probability of each further step, from a memory to a link or back; otherwise, the walk starts again.
DAMPING = 0.5
# From a memory to a link to a memory: a fact about a fact about what the question names.
HOPS = 2
# The memories that a hop starts from, the most visited first.
MOST_VISITED = 32

Mass = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Links:
    """Pairs of a link and a memory that has it; `weights` are those of the links, equal for all pairs of a link."""

    links: Seqs
    memories: Seqs
    weights: Floats


NO_LINKS = Links(NO_ROWS, NO_ROWS, np.empty(0, np.float32))
# Returns the complete links of some memories.
FindLinks = Callable[[Seqs], Links]


def join_links(parts: Sequence[Links]) -> Links:
    """Return all links; equal numbers in different parts are different links."""
    first = 0
    numbers = []
    for part in parts:
        numbers.append(part.links + first)
        first += int(part.links.max(initial=-1)) + 1
    return Links(
        np.concatenate([NO_ROWS, *numbers]),
        np.concatenate([NO_ROWS, *(part.memories for part in parts)]),
        np.concatenate([NO_LINKS.weights, *(part.weights for part in parts)]),
    )


@dataclass(frozen=True, slots=True)
class Visited:
    """The memories that a walk visits, in row order, and how often, by each of its starts: shape (starts, memories)."""

    memories: Seqs
    mass: Mass


def walk(find_links: FindLinks, starts: Seqs, shares: Floats, hops: int = HOPS, limit: int = MOST_VISITED) -> Visited:
    """Return the memories that a random walk with restart visits after its start.

    `starts` are different memories in row order; `shares` are the probabilities to start at each. From a memory the
    walk takes a link by its weight, from a link any of its memories.
    """
    memories, mass = starts, np.diag(shares.astype(np.float64))
    visited: list[Visited] = []
    for hop in range(1, hops + 1):
        links = find_links(memories)
        memories, mass = spread(links, memories, mass)
        visited.append(Visited(memories, mass * DAMPING ** (2 * hop)))
        most = np.sort(np.argsort(-mass.sum(axis=0), kind="stable")[:limit])
        memories, mass = memories[most], mass[:, most]
    return _add_up(visited, len(starts))


def spread(links: Links, memories: Seqs, mass: Mass) -> tuple[Seqs, Mass]:
    """Move the mass of memories, in row order, along their links; return the reached memories and their mass."""
    numbers, link_at = np.unique(links.links, return_inverse=True)
    reached, reached_at = np.unique(links.memories, return_inverse=True)
    if not len(reached) or not len(memories):
        return NO_ROWS, np.zeros((len(mass), 0))
    at = np.searchsorted(memories, links.memories).clip(max=len(memories) - 1)
    leaves = memories[at] == links.memories
    at, weights = at[leaves], links.weights[leaves]
    shares = weights / np.bincount(at, weights, len(memories))[at]
    sizes = np.bincount(link_at, minlength=len(numbers))
    moved = np.empty((len(mass), len(reached)))
    for start, row in enumerate(mass):
        on_links = np.bincount(link_at[leaves], row[at] * shares, len(numbers)) / sizes
        moved[start] = np.bincount(reached_at, on_links[link_at], len(reached))
    return reached, moved


def _add_up(parts: Sequence[Visited], starts: int) -> Visited:
    memories, at = np.unique(np.concatenate([NO_ROWS, *(part.memories for part in parts)]), return_inverse=True)
    mass = np.zeros((starts, len(memories)))
    for row, values in zip(mass, np.hstack([np.zeros((starts, 0)), *(part.mass for part in parts)]), strict=True):
        row += np.bincount(at, values, len(memories))
    return Visited(memories, mass)


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
        """Return the pairs of the given rows; rows beyond the matrix have none."""
        rows = rows[rows < len(self.starts) - 1]
        counts = self.starts[rows + 1] - self.starts[rows]
        ends = np.cumsum(counts)
        at = np.repeat(self.starts[rows] - (ends - counts), counts) + np.arange(int(ends[-1]) if len(ends) else 0)
        return np.repeat(rows, counts), self.values[at].astype(np.int64)


@dataclass(frozen=True, slots=True)
class SharedWords:
    """The words of memories, by memory and by word."""

    by_memory: SparseRows
    by_word: SparseRows

    @classmethod
    def of(cls, words: Seqs, seqs: Seqs, word_count: int) -> "SharedWords":
        """Keep the words that are rare enough to be links, of pairs of a word and a memory."""
        rare = np.bincount(words, minlength=word_count)[words] <= MOST_HOLDERS
        words, seqs = words[rare], seqs[rare]
        size = int(seqs.max(initial=-1)) + 1
        return cls(SparseRows.of(seqs, words, size), SparseRows.of(words, seqs, word_count))


@dataclass(frozen=True, slots=True)
class WordGraph:
    """The words of a corpus: those of its segment and, with further numbers, those of its tail."""

    corpus: Corpus
    segment: SharedWords
    tail: SharedWords
    tail_numbers: Mapping[str, int]

    def find_links(self, memories: Seqs, excluded: Collection[int], allowed: NDArray[np.bool_]) -> Links:
        """Return the rare words of memories, and all allowed memories with them."""
        _, of_segment = self.segment.by_memory.list_pairs(memories[~values_at(self.corpus.fresh, memories)])
        _, of_tail = self.tail.by_memory.list_pairs(memories)
        words = np.setdiff1d(np.concatenate((of_segment, of_tail)), np.array(sorted(excluded), np.int64))
        old_words, old = self.segment.by_word.list_pairs(words)
        new_words, new = self.tail.by_word.list_pairs(words)
        # An edited memory is in the segment with its old text.
        current = ~values_at(self.corpus.fresh, old)
        numbers, seqs = np.concatenate((old_words[current], new_words)), np.concatenate((old[current], new))
        visible = values_at(allowed, seqs).astype(np.bool_)
        return weigh_links(numbers[visible], seqs[visible], self.corpus.count)

    def list_numbers(self, terms: Collection[str]) -> list[int]:
        """Return the numbers of words, without those of no memory."""
        known: Mapping[str, int] = self.corpus.segment.words.vocab_dict
        numbers = (known.get(term, self.tail_numbers.get(term)) for term in terms)
        return [number for number in numbers if number is not None]


def weigh_links(numbers: Seqs, memories: Seqs, count: int) -> Links:
    """Weigh links by their rarity among a number of memories; drop those that link nothing or too much."""
    distinct, at = np.unique(numbers, return_inverse=True)
    sizes = np.bincount(at, minlength=len(distinct))
    by_size = np.array([idf(max(count, size), size) for size in range(MOST_HOLDERS + 1)], np.float32)
    links = (sizes[at] > 1) & (sizes[at] <= MOST_HOLDERS)
    return Links(at[links].astype(np.int64), memories[links], by_size[sizes[at[links]]])


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
    return SharedWords.of(words[known], segment.rows[counted.texts[known]], count)


def _index_tail(corpus: Corpus, segment: SharedWords) -> WordGraph:
    known: Mapping[str, int] = corpus.segment.words.vocab_dict
    first = len(segment.by_word.starts) - 1
    added: dict[str, int] = {}
    columns = corpus.list_tail_words()
    numbers = [known[term] if term in known else added.setdefault(term, first + len(added)) for term, _ in columns]
    words = np.repeat(np.array(numbers, np.int64), [len(seqs) for _, seqs in columns])
    seqs = np.concatenate([NO_ROWS, *(seqs for _, seqs in columns)])
    rare = values_at(np.diff(corpus.segment.counted.starts), words) <= MOST_HOLDERS
    return WordGraph(corpus, segment, SharedWords.of(words[rare], seqs[rare], first + len(added)), added)
