"""Find pairs of words that memories use for one thing, with the encoder: short forms, and words of one meaning.

The cosines of an encoder's word vectors are compared with those of words that are close without being synonyms, as for
the names of facts. Between languages, word vectors of the multilingual encoder find more wrong pairs than right ones
(decision 0051), so no limit is lower there. The words that calibrate the limits are ASCII and say nothing about other
scripts.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from pipeline.index.encoder import rarity
from pipeline.jobs.mining.workspace_words import WorkspaceWords
from pipeline.recall.fact_names import NameVectors, is_contraction

# A short form and its long form are together in so many memories.
LEAST_TOGETHER: Final = 2
MAX_HOLDERS: Final = 50
LEAST_RARITY: Final = 0.8
LEAST_LONG_CHARS: Final = 5
# A short form leaves out the vowels: "btn", "ctx", "env". Other letters in order match by chance: "spot", "support".
_SHORT_FORM: Final = re.compile(r"[a-z][^aeiou\W\d_]{1,3}")
# The newest words; each costs an encoding.
MAX_NEIGHBOR_WORDS: Final = 300
MAX_NEIGHBOR_HOLDERS: Final = 3


def find_co_mentioned(words: WorkspaceWords, vectors: Callable[[], NameVectors]) -> Iterator[tuple[str, str, int]]:
    """Yield a short and a long form of one word that several memories contain together, and such a memory."""
    spellings = {token: word for token, word in words.spellings().items() if token.isalpha() and token.isascii()}
    for token in sorted(filter(_SHORT_FORM.fullmatch, spellings)):
        holders = words.holders(token)
        if rarity(token) < LEAST_RARITY or not LEAST_TOGETHER <= len(holders) <= MAX_HOLDERS:
            continue
        near = Counter(other for seq in holders for other in set(words.tokens_of(seq)) if other in spellings)
        for other, together in sorted(near.items()):
            short, long = spellings[token].casefold(), spellings[other].casefold()
            if (
                together >= LEAST_TOGETHER
                and len(other) >= LEAST_LONG_CHARS
                and is_contraction(short, long)
                and vectors().cosine(short, long) >= vectors().limits.contraction
            ):
                yield spellings[token], spellings[other], max(holders & words.holders(other))


def find_neighbors(words: WorkspaceWords, vectors: Callable[[], NameVectors]) -> Iterator[tuple[str, str, int]]:
    """Yield rare words that are nearest to each other in meaning, and a memory with the second."""
    rare = {
        token: word.casefold()
        for token, word in words.spellings().items()
        if word.isalpha()
        and word.isascii()
        and len(word) >= LEAST_LONG_CHARS
        and len(words.holders(token)) <= MAX_NEIGHBOR_HOLDERS
        and rarity(token) >= LEAST_RARITY
    }
    tokens = sorted(rare, key=lambda token: (-max(words.holders(token)), token))[:MAX_NEIGHBOR_WORDS]
    if len(tokens) < 2:
        return
    names = [rare[token] for token in tokens]
    matrix = vectors().encode(names)
    cosines = matrix @ matrix.T
    np.fill_diagonal(cosines, -1)
    nearest = cosines.argmax(axis=1)
    for at, other in enumerate(nearest.tolist()):
        if at < other and nearest[other] == at and cosines[at, other] >= vectors().limits.synonym:
            yield names[at], names[other], max(words.holders(tokens[other]))
