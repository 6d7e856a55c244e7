"""Find the hits that a later hit replaces by its own words: "the freeze is lifted", "amended: …", "now runs at 04:30".

What is replaced is the best earlier hit about the same subject: the two texts share many of their rare words, or both
are relevant and share many of the query's.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence, Set as AbstractSet

from pipeline.index.encoder import rarity
from pipeline.records import Memory
from pipeline.text.changes import says_that_changed
from pipeline.text.tokens import search_tokens

# A longer text also mentions a change among other subjects, unless it begins with it; the longest have several.
SHORT_CHARS, BEGINNING_CHARS, LONGEST_CHARS = 300, 100, 1200
# Minimum shares of the shorter text's words, and of the query's words, weighted by their rarity among the hits.
SHARED, SHARED_OF_QUERY = 0.3, 0.4
LEAST_SHARED = 2
# Among fewer hits, every word would be common.
MANY_HITS = 30


def find_announced_changes(
    ranked: Sequence[Memory], relevant: AbstractSet[int], query: str
) -> Iterator[tuple[Memory, Memory]]:
    """Yield the ranked memories that say that they change something, each below the memory that it changes.

    `relevant` are the row numbers of the relevant ones.
    """
    ranked = [memory for memory in ranked if len(memory.content) <= LONGEST_CHARS]
    changing = [place for place, memory in enumerate(ranked) if place and announces_change(memory.content)]
    if not changing:
        return
    hits = HitWords(ranked, query)
    for place in changing:
        later = ranked[place]
        for earlier in ranked[:place]:
            are_relevant = relevant >= {earlier.seq, later.seq}
            if earlier.occurred_at < later.occurred_at and hits.are_about_same(earlier, later, are_relevant):
                yield earlier, later
                break


def announces_change(text: str) -> bool:
    """Return whether a text is about a change: a short text anywhere, a longer one at its beginning."""
    if len(text) > LONGEST_CHARS:
        return False
    return says_that_changed(text if len(text) <= SHORT_CHARS else text[:BEGINNING_CHARS])


class HitWords:
    """The words of the query and of its hits, and how rare each is among the hits."""

    def __init__(self, ranked: Sequence[Memory], query: str) -> None:
        self._asked = frozenset(search_tokens(query))
        self._words = {memory.seq: frozenset(search_tokens(memory.content)) for memory in ranked}
        self._counts = Counter(word for words in self._words.values() for word in words)

    def are_about_same(self, earlier: Memory, later: Memory, are_relevant: bool) -> bool:
        """Return whether two hits are about the same subject."""
        own, others = self._words[earlier.seq], self._words[later.seq]
        common = own & others
        if len(common) < LEAST_SHARED:
            return False
        if self._weigh(common) >= SHARED * min(self._weigh(own), self._weigh(others)):
            return True
        return are_relevant and self._weigh(common & self._asked) >= SHARED_OF_QUERY * self._weigh(self._asked)

    def _weigh(self, words: AbstractSet[str]) -> float:
        size = max(len(self._words), MANY_HITS)
        return sum(rarity(word) * math.log((size + 1) / (self._counts[word] + 0.5)) for word in words)
