"""The terms of the memories that are newer than the segment."""

from array import array
from collections import Counter
from collections.abc import Sequence

import numpy as np

from pipeline.index.row_arrays import Seqs
from pipeline.index.segment import Posting
from pipeline.text.tokens import is_field


class TailPostings:
    """Postings of the tail, which grow with every write; protected by the owner's lock."""

    def __init__(self) -> None:
        self.last_change = 0
        self.lengths: dict[int, int] = {}
        self._columns: dict[str, tuple[array[int], array[int]]] = {}

    def put(self, seq: int, terms: Sequence[str]) -> None:
        """Add a memory, replacing the postings of its old text."""
        if seq in self.lengths:
            self._forget(seq)
        self.lengths[seq] = sum(not is_field(term) for term in terms)
        for term, count in Counter(terms).items():
            column = self._columns.get(term)
            if column is None:
                column = self._columns[term] = array("q"), array("I")
            column[0].append(seq)
            column[1].append(count)

    def drop(self, seq: int) -> None:
        """Remove a memory."""
        del self.lengths[seq]
        self._forget(seq)

    def _forget(self, seq: int) -> None:
        # Edits of recent memories are rare, so there is no index from a memory to its terms.
        for seqs, counts in self._columns.values():
            if seq in seqs:
                index = seqs.index(seq)
                del seqs[index], counts[index]

    def posting(self, term: str) -> Posting:
        """Return the row numbers of the memories with a term, and the term's counts."""
        seqs, counts = self._columns.get(term, ((), ()))
        return np.array(seqs, np.int64), np.array(counts, np.float32)

    def list_words(self) -> list[tuple[str, Seqs]]:
        """Return each word that is not a field, and the row numbers of the memories with it."""
        columns = ((term, seqs) for term, (seqs, _) in self._columns.items() if seqs and not is_field(term))
        return [(term, np.array(seqs, np.int64)) for term, seqs in columns]
