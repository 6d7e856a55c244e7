"""The files of a compiled encoder: how they are written, and how they are compared with the original model."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from pipeline.index.encoder import (
    BACKGROUND_FILE,
    MANIFEST_FILE,
    MODEL_FILE,
    TOKENIZER_FILE,
    Manifest,
    OnnxEncoder,
    Vectors,
    background_messages,
    file_digest,
    read_manifest,
)
from pipeline.index.token_table import TABLE_FILE

LOWEST_COSINE: Final = 0.999
# Eight-bit weights are used if they are this close to the original; otherwise the export itself (decision 0001).
LOWEST_QUANTIZED_COSINE: Final = 0.95

# ONNX Runtime then uses all processors. Nothing else waits for a model as it is built.
ALL_THREADS: Final = 0
_MESSAGES_AT_ONCE: Final = 50

SAMPLE: Final = (
    "ok",
    "We moved the queue from Redis to SQLite last Thursday.",
    "Warum schlägt der Test in verdict-policy.ts fehl? 为什么测试失败",
    "The cache is cleared after every release. " * 12,
    "def load(path: Path) -> dict[str, int]: return json.loads(path.read_text())  # ABC-123\n" * 60,
)


@dataclass(frozen=True, slots=True)
class Reference:
    """Vectors of the sample by the original model, as documents and as queries."""

    documents: Vectors
    queries: Vectors


def measure_agreement(compiled: OnnxEncoder, reference: Reference) -> float:
    """Return the lowest cosine to the original, over sentences encoded together and alone."""
    sample = list(SAMPLE)
    return min(
        lowest_cosine(compiled.encode_documents(sample), reference.documents),
        lowest_cosine(np.stack([compiled.encode_query(text) for text in sample]), reference.queries),
    )


def lowest_cosine(ours: Vectors, theirs: Vectors) -> float:
    """Return the lowest cosine between unit vectors of the same texts."""
    return float((ours * theirs).sum(axis=1).min())


def write_manifest(manifest: Manifest, directory: Path) -> None:
    """Write the manifest with the digests of the files that exist."""
    names = (MODEL_FILE, TABLE_FILE, TOKENIZER_FILE, BACKGROUND_FILE)
    digests = {name: file_digest(directory / name) for name in names if (directory / name).exists()}
    text = json.dumps(asdict(replace(manifest, sha256=digests)), indent=1)
    (directory / MANIFEST_FILE).write_text(text + "\n", encoding="utf-8")


def encode_background(encoder: OnnxEncoder, directory: Path) -> None:
    """Add the background messages' vectors, which are the same for all workspaces.

    The encoder must use one thread: to encode several short texts at once is faster than several threads for each.
    """
    messages = background_messages()
    parts = [messages[start : start + _MESSAGES_AT_ONCE] for start in range(0, len(messages), _MESSAGES_AT_ONCE)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        vectors = np.concatenate(list(pool.map(encoder.encode_documents, parts)))
    np.save(directory / BACKGROUND_FILE, vectors)
    write_manifest(read_manifest(directory), directory)
