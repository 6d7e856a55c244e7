"""Find the hits that a later hit replaces by its own words: "the freeze is lifted", "amended: …", "now runs at 04:30".

What is replaced is the best earlier hit about the same subject: the two texts share many of their rare words, or both
are relevant and share many of the query's.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence, Set as AbstractSet
from itertools import chain

from pipeline.index.encoder import rarity
from pipeline.store.memory_rows import StatementRow
from pipeline.text.changes import says_that_changed
from pipeline.text.text_cache import cache_by_text
from pipeline.text.tokens import list_tokens, search_tokens

# A longer text also mentions a change among other subjects, unless it begins with it; the longest have several.
SHORT_CHARS, BEGINNING_CHARS, LONGEST_CHARS = 300, 100, 1200
# Minimum shares of the shorter text's words, and of the query's words, weighted by their rarity among the hits.
SHARED, SHARED_OF_QUERY = 0.3, 0.4
LEAST_SHARED = 2
# Among fewer hits, every word would be common.
MANY_HITS = 30
MAX_CACHED_TEXTS = 8192


def find_announced_changes(
    ranked: Sequence[StatementRow], relevant: AbstractSet[int], query: str
) -> Iterator[tuple[StatementRow, StatementRow]]:
    """Yield the ranked memories that say that they change something, each below the memory that it changes.

    `relevant` are the row numbers of the relevant ones.
    """
    ranked = [row for row in ranked if len(row.content) <= LONGEST_CHARS]
    changing = [place for place, row in enumerate(ranked) if place and announces_change(row.content)]
    if not changing:
        return
    hits = HitWords(ranked, query)
    for place in changing:
        later = ranked[place]
        for earlier in ranked[:place]:
            are_relevant = relevant >= {earlier.seq, later.seq}
            if earlier.occurred_at < later.occurred_at and hits.are_about_same(earlier.seq, later.seq, are_relevant):
                yield earlier, later
                break


def announces_change(text: str) -> bool:
    """Return whether a text is about a change: a short text anywhere, a longer one at its beginning."""
    if len(text) > LONGEST_CHARS:
        return False
    return _says_that_changed(text if len(text) <= SHORT_CHARS else text[:BEGINNING_CHARS])


_says_that_changed = cache_by_text(MAX_CACHED_TEXTS)(says_that_changed)


class HitWords:
    """The words of the query and of its hits, and how rare each is among the hits."""

    def __init__(self, ranked: Sequence[StatementRow], query: str) -> None:
        self._asked = frozenset(search_tokens(query))
        self._words = {row.seq: frozenset(list_tokens(row.content)) for row in ranked}
        self._counts = Counter(chain.from_iterable(self._words.values()))
        self._weights: dict[str, float] = {}
        self._totals: dict[int, float] = {}

    def are_about_same(self, earlier: int, later: int, are_relevant: bool) -> bool:
        """Return whether two hits, by row number, are about the same subject."""
        common = self._words[earlier] & self._words[later]
        if len(common) < LEAST_SHARED:
            return False
        if self._weigh(common) >= SHARED * min(self._weigh_hit(earlier), self._weigh_hit(later)):
            return True
        return are_relevant and self._weigh(common & self._asked) >= SHARED_OF_QUERY * self._weigh(self._asked)

    def _weigh_hit(self, seq: int) -> float:
        if seq not in self._totals:
            self._totals[seq] = self._weigh(self._words[seq])
        return self._totals[seq]

    def _weigh(self, words: AbstractSet[str]) -> float:
        for word in words - self._weights.keys():
            size = max(len(self._words), MANY_HITS)
            self._weights[word] = rarity(word) * math.log((size + 1) / (self._counts[word] + 0.5))
        return sum(map(self._weights.__getitem__, words))
