"""An inverted index: for each term, which memories hold it and how often."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.index.rows import Seqs
from pipeline.text.tokens import is_field

Counts = NDArray[np.float32]
Posting = tuple[Seqs, Counts]

NOTHING: Posting = np.empty(0, np.int64), np.empty(0, np.float32)
MOST = np.iinfo(np.uint8).max


@dataclass(frozen=True, slots=True)
class Postings:
    """Postings of many memories, column by column; immutable.

    `starts[n]` to `starts[n + 1]` is the column of term number n in `seqs` (row numbers, ascending) and `counts`.
    `rows` lists every memory, `lengths` its number of tokens; fields count for no length.
    """

    terms: Mapping[str, int]
    starts: NDArray[np.int64]
    seqs: NDArray[np.int32]
    counts: NDArray[np.uint8]
    rows: Seqs
    lengths: NDArray[np.int32]

    def of(self, term: str) -> Posting:
        """Return the row numbers of the memories that hold a term, and how often each does."""
        number = self.terms.get(term)
        if number is None:
            return NOTHING
        column = slice(self.starts[number], self.starts[number + 1])
        return self.seqs[column].astype(np.int64), self.counts[column].astype(np.float32)


def invert(documents: Iterable[tuple[int, Sequence[str]]]) -> Postings:
    """Turn (row number, terms) pairs, in row order, into postings."""
    terms: dict[str, int] = {}
    numbers: list[int] = []
    counts: list[int] = []
    rows: list[int] = []
    distinct: list[int] = []
    lengths: list[int] = []
    for seq, found in documents:
        counted = Counter(found)
        numbers.extend(terms.setdefault(term, len(terms)) for term in counted)
        counts.extend(counted.values())
        rows.append(seq)
        distinct.append(len(counted))
        lengths.append(length_of(found))
    columns = np.array(numbers, np.int64)
    # A stable sort by term keeps each column in row order.
    order = np.argsort(columns, kind="stable")
    return Postings(
        terms,
        np.searchsorted(columns[order], np.arange(len(terms) + 1)).astype(np.int64),
        np.repeat(np.array(rows, np.int32), distinct)[order],
        np.minimum(np.array(counts, np.int64)[order], MOST).astype(np.uint8),
        np.array(rows, np.int64),
        np.array(lengths, np.int32),
    )


def length_of(terms: Sequence[str]) -> int:
    """Count the terms that are words."""
    return sum(not is_field(term) for term in terms)
