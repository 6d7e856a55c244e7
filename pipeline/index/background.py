"""The rest of the world: messages that have nothing to do with any project, against which a memory's nearness counts.

A question is always nearest to something. Whether that means anything shows when it is nearer to a memory than to
every one of these, and shares words with it that these seldom use. `background.txt` holds one message a line.
"""

import math
from collections import Counter
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from pipeline.text.tokens import search_tokens

Vectors = NDArray[np.float32]


@cache
def background_messages() -> tuple[str, ...]:
    """Return the messages."""
    text = files(__package__).joinpath("background.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())


def rarity(token: str) -> float:
    """Return how seldom the world uses a token: 1 for never, towards 0 for in every message."""
    messages = len(background_messages())
    return math.log((messages + 1) / (_frequencies().get(token, 0) + 1)) / math.log(messages + 1)


def baseline(vectors: Vectors) -> float:
    """Return the mean cosine between different messages: what an encoder gives texts that are unrelated."""
    count = len(vectors)
    if count < 2:
        return 0.0
    total = np.square(vectors.sum(axis=0, dtype=np.float64)).sum()
    return float((total - count) / (count * (count - 1)))


def nearest(vectors: Vectors, query: Vectors) -> float:
    """Return the cosine of the message that is nearest to a query vector, that of unrelated texts without any."""
    return float((vectors @ query).max()) if len(vectors) else baseline(vectors)


@cache
def _frequencies() -> Mapping[str, int]:
    return Counter(token for message in background_messages() for token in set(search_tokens(message)))
