"""A torch and a model of sentence-transformers for tests without a GPU."""

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np

from pipeline.enums import Device
from pipeline.index.encoder import Vectors
from tests.fakes.encoder import HashEncoder


def fake_torch(*found: Device) -> SimpleNamespace:
    """A torch that finds these GPUs."""
    return SimpleNamespace(
        cuda=SimpleNamespace(is_available=lambda: Device.CUDA in found),
        backends=SimpleNamespace(mps=SimpleNamespace(is_available=lambda: Device.MPS in found)),
    )


class FakeOriginal:
    """A model of sentence-transformers: vectors with this cosine to those of the hash encoder.

    It fails like a GPU without memory after so many calls; `encoded` has the number of texts of each call.
    """

    def __init__(self, cosine: float = 1.0, fails_after: int | None = None) -> None:
        self.prompts: dict[str, str] = {}
        self.encoded: list[int] = []
        self._cosine, self._fails_after = cosine, fails_after

    def encode(self, texts: Sequence[str], **_options: object) -> Vectors:
        if len(self.encoded) == self._fails_after:
            raise RuntimeError("CUDA out of memory")
        self.encoded.append(len(texts))
        vectors = HashEncoder().encode_documents(texts)
        # Any direction at a right angle to the vector.
        other = np.random.default_rng(0).normal(size=vectors.shape)
        other -= (other * vectors).sum(axis=1, keepdims=True) * vectors
        other /= np.linalg.norm(other, axis=1, keepdims=True)
        return (self._cosine * vectors + np.sqrt(1 - self._cosine**2) * other).astype(np.float32)
