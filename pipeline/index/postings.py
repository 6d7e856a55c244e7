"""Count the words of documents into a matrix with a column per word, in the layout of bm25s.

bm25s itself counts text by text in Python, which takes minutes for the turns of a gigabyte of transcripts. Here, a
block of texts is counted by one sort, and memory stays below three times that of the finished matrix.
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.text.tokens import compound_tokens, list_compounds

# Words that are counted by one sort.
BLOCK_WORDS = 1_000_000
# Spellings whose terms are kept; more are a text of random names.
KEPT_SPELLINGS = 300_000
MOST_COUNTED = int(np.iinfo(np.uint16).max)

Numbers = NDArray[np.int32]
Counts = NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class CountedWords:
    """How often each text contains each word: `texts` and `counts` by column, and where each column starts."""

    texts: Numbers
    counts: Counts
    starts: NDArray[np.int64]
    lengths: Numbers
    vocabulary: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Block:
    """The words of some texts, ordered by word and text."""

    words: Numbers
    texts: Numbers
    counts: Counts


class TermNumbers(dict[str, tuple[int, ...]]):
    """The numbers of the terms of each spelling in a vocabulary that grows."""

    def __init__(self, vocabulary: dict[str, int]) -> None:
        super().__init__()
        self._vocabulary = vocabulary

    def __missing__(self, compound: str) -> tuple[int, ...]:
        if len(self) >= KEPT_SPELLINGS:
            self.clear()
        vocabulary = self._vocabulary
        numbers = tuple(vocabulary.setdefault(term, len(vocabulary)) for term in compound_tokens(compound))
        self[compound] = numbers
        return numbers


class WordCounter:
    """Count the words of texts, one after the other."""

    def __init__(self) -> None:
        self._vocabulary: dict[str, int] = {}
        self._numbers = TermNumbers(self._vocabulary)
        self._lengths = array("i")
        self._blocks: list[_Block] = []
        self._words = array("i")
        self._first = 0

    def add_terms(self, terms: Iterable[str]) -> None:
        """Count a text that was split into terms."""
        vocabulary = self._vocabulary
        words = [vocabulary.setdefault(term, len(vocabulary)) for term in terms]
        self._words.extend(words)
        self._end_text(len(words))

    def add_text(self, text: str) -> None:
        """Count the search tokens of a text."""
        before = len(self._words)
        for numbers in map(self._numbers.__getitem__, list_compounds(text)):
            self._words.extend(numbers)
        self._end_text(len(self._words) - before)

    def add_counted(self, counted: CountedWords, kept: NDArray[np.bool_]) -> None:
        """Take over texts that were counted earlier, as the first ones; only those that are `kept`."""
        self._vocabulary.update(counted.vocabulary)
        numbers = (np.cumsum(kept) - 1).astype(np.int32)
        at = kept[counted.texts]
        words = np.repeat(np.arange(len(counted.starts) - 1, dtype=np.int32), np.diff(counted.starts))
        self._blocks.append(_Block(words[at], numbers[counted.texts[at]], counted.counts[at]))
        self._lengths.extend(counted.lengths[kept].tolist())
        self._first = len(self._lengths)

    def finish(self) -> CountedWords:
        """Return the matrix; the counter cannot be used afterwards. Words of no text are left out."""
        self._end_block()
        size = len(self._vocabulary)
        frequencies = np.zeros(size, np.int64)
        for block in self._blocks:
            frequencies += np.bincount(block.words, minlength=size)
        starts = np.concatenate(([0], np.cumsum(frequencies)))
        texts, counts = np.empty(int(starts[-1]), np.int32), np.empty(int(starts[-1]), np.uint16)
        free = starts[:-1].copy()
        for at, block in _place(self._drop_blocks(), free):
            texts[at], counts[at] = block.texts, block.counts
        used = frequencies > 0
        renumbered = (np.cumsum(used) - 1).tolist()
        vocabulary = {term: renumbered[number] for term, number in self._vocabulary.items() if used[number]}
        ends = np.concatenate(([0], starts[1:][used]))
        return CountedWords(texts, counts, ends, np.array(self._lengths, np.int32), vocabulary)

    def _end_text(self, length: int) -> None:
        self._lengths.append(length)
        if len(self._words) >= BLOCK_WORDS:
            self._end_block()

    def _end_block(self) -> None:
        lengths = np.array(self._lengths[self._first :], np.int64)
        texts = np.repeat(np.arange(self._first, len(self._lengths), dtype=np.int64), lengths)
        keys, counts = np.unique((np.array(self._words, np.int64) << 32) | texts, return_counts=True)
        self._blocks.append(
            _Block(
                (keys >> 32).astype(np.int32),
                (keys & 0xFFFFFFFF).astype(np.int32),
                np.minimum(counts, MOST_COUNTED).astype(np.uint16),
            )
        )
        self._words, self._first = array("i"), len(self._lengths)

    def _drop_blocks(self) -> Iterator[_Block]:
        # In order: the texts of each column ascend.
        self._blocks.reverse()
        while self._blocks:
            yield self._blocks.pop()


def _place(blocks: Iterable[_Block], free: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], _Block]]:
    """Yield each block with the positions of its entries, behind those of the blocks before it."""
    for block in blocks:
        if not len(block.words):
            continue
        begins = np.flatnonzero(np.concatenate(([True], np.diff(block.words) != 0)))
        runs = np.diff(np.concatenate((begins, [len(block.words)])))
        words = block.words[begins]
        yield np.repeat(free[words] - begins, runs) + np.arange(len(block.words)), block
        free[words] += runs
