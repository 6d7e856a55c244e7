"""Keep the vectors of the last short texts: the sentence of a short memory is screened soon after it is embedded."""

from collections.abc import Sequence

import numpy as np

from pipeline.index.encoder import Encoder, Vectors
from pipeline.lru import LruCache

# Digestion may embed some turns of work before it screens; 2,048 vectors take 3 MB.
KEPT = 2_048
# Longer texts are never encoded again as a sentence.
MAX_CHARS = 400


class DocumentVectors:
    """An encoder that encodes each of the last short documents once."""

    def __init__(self, encoder: Encoder) -> None:
        self.name = encoder.name
        self.dimension = encoder.dimension
        self.background = encoder.background
        self.encode_query = encoder.encode_query
        self.passages = encoder.passages
        self._encode = encoder.encode_documents
        self._known: LruCache[str, Vectors] = LruCache(KEPT)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Encode texts in order; shape (len(texts), dimension)."""
        vectors = np.empty((len(texts), self.dimension), np.float32)
        missing: dict[str, list[int]] = {}
        for number, text in enumerate(texts):
            if (known := self._known.peek(text)) is not None:
                vectors[number] = known
            else:
                missing.setdefault(text, []).append(number)
        for (text, numbers), vector in zip(
            missing.items(), self._encode(list(missing)) if missing else (), strict=True
        ):
            vectors[numbers] = vector
            if len(text) <= MAX_CHARS:
                self._known.put(text, vector.copy())
        return vectors
