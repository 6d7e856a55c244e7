"""Texts that were embedded are not encoded again, and the vectors are those of the encoder."""

import numpy as np
from hypothesis import given, strategies as st

from pipeline.index.encoders import MAX_CHARS, DocumentVectors
from tests.fakes.encoder import HashEncoder

TEXTS = st.lists(
    st.sampled_from(["a red fox", "a blue fox", "the port is 8123", "x" * MAX_CHARS, "y" * (MAX_CHARS + 1)])
)


class CountingEncoder(HashEncoder):
    """Notes which texts it encodes."""

    def __init__(self):
        super().__init__()
        self.encoded = []

    def encode_documents(self, texts):
        self.encoded += texts
        return super().encode_documents(texts)


@given(st.lists(TEXTS, max_size=4))
def test_cached_vectors_equal_the_encoder_and_short_texts_are_reused(batches):
    counting = CountingEncoder()
    kept = DocumentVectors(counting)
    for texts in batches:
        vectors = kept.encode_documents(texts)
        assert vectors.shape == (len(texts), kept.dimension)
        assert np.array_equal(vectors, HashEncoder().encode_documents(texts).reshape(vectors.shape))
    short = [text for text in counting.encoded if len(text) <= MAX_CHARS]
    assert sorted(short) == sorted({text for texts in batches for text in texts if len(text) <= MAX_CHARS})


def test_a_caller_may_change_its_vectors():
    kept = DocumentVectors(HashEncoder())
    kept.encode_documents(["a red fox"])[:] = 0
    kept.encode_documents(["a red fox"])[:] = 0
    assert kept.encode_documents(["a red fox"]).any()
