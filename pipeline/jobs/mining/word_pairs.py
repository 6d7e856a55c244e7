"""Find pairs of words that memories use for one thing: short forms beside long forms, and words of one meaning."""

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from pipeline.index.encoder import Encoder, rarity
from pipeline.jobs.mining.workspace_words import WorkspaceWords
from pipeline.recall.fact_names import NameVectors, is_contraction

# Pairs of words that so many memories contain together.
LEAST_TOGETHER = 2
MAX_HOLDERS = 50
MAX_SHORT_CHARS = 4
LEAST_RARITY = 0.8
MOST_NEIGHBOR_WORDS = 1_000
MAX_NEIGHBOR_HOLDERS = 3
LEAST_NEIGHBOR_CHARS = 5


def find_co_mentioned(words: WorkspaceWords) -> Iterator[tuple[str, str, int]]:
    """Yield a short and a long form of one word that several memories contain together, and such a memory."""
    spellings = {token: word for token, word in words.words().items() if token.isalpha() and token.isascii()}
    short = {token for token in spellings if 2 <= len(token) <= MAX_SHORT_CHARS and rarity(token) >= LEAST_RARITY}
    for token in sorted(short):
        holders = words.holders(token)
        if not LEAST_TOGETHER <= len(holders) <= MAX_HOLDERS:
            continue
        near = Counter(other for seq in holders for other in set(words.tokens_of(seq)) if other in spellings)
        for other, together in sorted(near.items()):
            if together >= LEAST_TOGETHER and len(other) > MAX_SHORT_CHARS and is_contraction(token, other):
                yield spellings[token], spellings[other], max(holders & words.holders(other))


def find_neighbors(words: WorkspaceWords, encoder: Callable[[], Encoder]) -> Iterator[tuple[str, str, int]]:
    """Yield rare words that are nearest to each other in meaning, and a memory with the second."""
    rare = {
        token: word
        for token, word in words.words().items()
        if word.isalpha()
        and len(word) >= LEAST_NEIGHBOR_CHARS
        and len(words.holders(token)) <= MAX_NEIGHBOR_HOLDERS
        and rarity(token) >= LEAST_RARITY
    }
    # Words of the newest memories come first.
    tokens = sorted(rare, key=lambda token: (-max(words.holders(token)), token))[:MOST_NEIGHBOR_WORDS]
    if len(tokens) < 2:
        return
    names = [rare[token].casefold() for token in tokens]
    vectors = NameVectors(encoder(), len(names))
    matrix = vectors.encode(names)
    cosines = matrix @ matrix.T
    np.fill_diagonal(cosines, -1)
    nearest = cosines.argmax(axis=1)
    for at, other in enumerate(nearest.tolist()):
        if at < other and nearest[other] == at and cosines[at, other] >= vectors.limits.synonym:
            yield names[at], names[other], max(words.holders(tokens[other]))
