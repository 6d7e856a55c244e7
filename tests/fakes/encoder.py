import hashlib
import re
from collections.abc import Sequence
from itertools import count

import numpy as np

from pipeline.index.encoder import Vectors
from pipeline.kernel.records.digestion import Passage

_WORD = re.compile(r"\w+")


class HashEncoder:
    """Vectors from hashed words: texts that share words are near each other, and nothing needs a model."""

    def __init__(self, name: str = "hash", dimension: int = 64, window: int = 256) -> None:
        self.name = name
        self.dimension = dimension
        self._window = window
        self.background = np.empty((0, dimension), np.float32)

    def encode_query(self, text: str) -> Vectors:
        return self._vector(text)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        return np.array([self._vector(text) for text in texts], np.float32).reshape(len(texts), self.dimension)

    def passages(self, text: str) -> list[Passage]:
        words = [match.span() for match in _WORD.finditer(text)]
        if len(words) <= self._window:
            return [Passage(0, 0, len(text), text)]
        found: list[Passage] = []
        for first in count(0, self._window * 3 // 4):
            cut = words[first : first + self._window]
            start, end = cut[0][0], cut[-1][1]
            found.append(Passage(len(found), start, end, text[start:end]))
            if cut[-1] == words[-1]:
                return found
        return found

    def _vector(self, text: str) -> Vectors:
        vector = np.zeros(self.dimension, np.float32)
        for word in _WORD.findall(text.lower())[: self._window] or [""]:
            digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
            # Two places a word, so that two words seldom cancel each other out.
            vector[int.from_bytes(digest[:4], "big") % self.dimension] += 1
            vector[int.from_bytes(digest[4:], "big") % self.dimension] += 1
        return (vector / np.linalg.norm(vector)).astype(np.float32)
