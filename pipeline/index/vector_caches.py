"""Encoders that keep the vectors of recent texts."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from pipeline.index.encoder import Encoder, Vectors
from pipeline.lru import LruCache

# A message is searched in memories, sessions and the personal store.
QUERIES_KEPT = 64
# The sentence of a short memory is screened soon after it is embedded. Digestion may embed some turns of work before it
# screens; 2,048 vectors take 3 MB.
DOCUMENTS_KEPT = 2_048
# Longer texts are never encoded again as a sentence.
MAX_CHARS = 400


class _CachingEncoder:
    """An encoder that passes on what a subclass does not keep."""

    def __init__(self, encoder: Encoder) -> None:
        self.name = encoder.name
        self.dimension = encoder.dimension
        self.background = encoder.background
        self.passages = encoder.passages
        self._encoder = encoder

    def encode_query(self, text: str) -> Vectors:
        """Encode a query; shape (dimension,)."""
        return self._encoder.encode_query(text)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Encode texts in order; shape (len(texts), dimension)."""
        return self._encoder.encode_documents(texts)


class QueryVectors(_CachingEncoder):
    """An encoder that encodes each of the last queries once."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self._find = lru_cache(maxsize=QUERIES_KEPT)(self._encode_shared)

    def encode_query(self, text: str) -> Vectors:
        """Encode a query; shape (dimension,). Callers share the vector, which is read-only."""
        return self._find(text)

    def _encode_shared(self, text: str) -> Vectors:
        vector = self._encoder.encode_query(text)
        vector.flags.writeable = False
        return vector


class DocumentVectors(_CachingEncoder):
    """An encoder that encodes each of the last short documents once."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self._known: LruCache[str, Vectors] = LruCache(DOCUMENTS_KEPT)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Encode texts in order; shape (len(texts), dimension)."""
        vectors = np.empty((len(texts), self.dimension), np.float32)
        missing: dict[str, list[int]] = {}
        for number, text in enumerate(texts):
            if (known := self._known.peek(text)) is not None:
                vectors[number] = known
            else:
                missing.setdefault(text, []).append(number)
        encoded = self._encoder.encode_documents(list(missing)) if missing else ()
        for (text, numbers), vector in zip(missing.items(), encoded, strict=True):
            vectors[numbers] = vector
            if len(text) <= MAX_CHARS:
                self._known.put(text, vector.copy())
        return vectors
