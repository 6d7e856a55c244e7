"""Keep the vectors of the last queries: a message is searched in memories, sessions and the personal store."""

from functools import lru_cache

from pipeline.index.encoder import Encoder, Vectors

KEPT = 64


class QueryVectors:
    """An encoder that encodes each of the last queries once."""

    def __init__(self, encoder: Encoder) -> None:
        self.name = encoder.name
        self.dimension = encoder.dimension
        self.background = encoder.background
        self.encode_documents = encoder.encode_documents
        self.passages = encoder.passages
        self._encode = encoder.encode_query
        self._find = lru_cache(maxsize=KEPT)(self._encode_shared)

    def encode_query(self, text: str) -> Vectors:
        """Encode a query; shape (dimension,). Callers share the vector, which is read-only."""
        return self._find(text)

    def _encode_shared(self, text: str) -> Vectors:
        vector = self._encode(text)
        vector.flags.writeable = False
        return vector
