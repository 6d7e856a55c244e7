"""Vectors that tell what a text means and not which language it is in.

A multilingual encoder puts a text nearer to others of its language than to others of its meaning. How the mean vectors
of languages differ is mostly that, where the same is said in each (Libovický, Rosa and Fraser 2020, "On the language
neutrality of pre-trained multilingual representations"). The directions in which they differ are projected out; those
in which what says the same still varies are shrunk (within-class covariance normalization: Hatch, Kajarekar and
Stolcke 2006).
"""

import json
from pathlib import Path
from typing import Any, Final

import numpy as np

from pipeline.index.encoder import Vectors

# The same sentences, in the same order, in each language: all of them in some, the first few in the others.
_SENTENCES: Final = Path(__file__).with_name("parallel.json")
_LEAST_SHARE: Final = 1e-4
# How much of the mean variance is added to each; chosen on sentences of its own (decision 0006).
_SHRINKAGE: Final = 1.0


def neutral_layer(original: Any, query_prompt: str, document_prompt: str) -> Any:
    """Make the last layer for a sentence-transformers model that takes language and prompt out of its vectors."""
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense

    languages = json.loads(_SENTENCES.read_text(encoding="utf-8")).values()
    queries, documents = (
        [_encoded(original, sentences, prompt) for sentences in languages] for prompt in (query_prompt, document_prompt)
    )
    centre, kept = neutral_projection(_means(queries), _means(documents))
    said = _complete(queries + documents)
    kept = within_class_normalization(said @ kept) @ kept
    width = len(centre)
    return Dense(
        width,
        width,
        activation_function=torch.nn.Identity(),
        init_weight=torch.from_numpy(kept),
        init_bias=torch.from_numpy(-kept @ centre),
    )


def neutral_projection(queries: Vectors, documents: Vectors) -> tuple[Vectors, Vectors]:
    """Find the centre and the projection that make languages and prompts alike; shapes (d,) and (d, d).

    Both arguments hold one mean vector a language; shape (languages, d).
    """
    means = (queries + documents) / 2
    centre = means.mean(axis=0)
    differences = np.vstack([means - centre, (queries - documents).mean(axis=0, keepdims=True)])
    _, sizes, directions = np.linalg.svd(differences, full_matrices=False)
    removed = directions[sizes > _LEAST_SHARE * sizes[0]]
    kept = np.eye(len(centre), dtype=np.float32) - removed.T @ removed
    return centre, kept


def within_class_normalization(said: Vectors) -> Vectors:
    """Find the map that shrinks directions in which what says the same varies; shape (d, d).

    The argument holds each sentence in several forms; shape (sentences, forms, d). Sizes stay about what they were.
    """
    deviations = (said - said.mean(axis=1, keepdims=True)).reshape(-1, said.shape[-1]).astype(np.float64)
    variances, directions = np.linalg.eigh(deviations.T @ deviations / len(deviations))
    relative = variances.clip(0) / variances.mean()
    shrunk: Vectors = ((directions / np.sqrt(relative + _SHRINKAGE)) @ directions.T).astype(np.float32)
    return shrunk


def _encoded(original: Any, sentences: list[str], prompt: str) -> Vectors:
    vectors: Vectors = original.encode(sentences, prompt=prompt, normalize_embeddings=True, show_progress_bar=False)
    return vectors


def _means(encoded: list[Vectors]) -> Vectors:
    """Average each language's sentences; those that it lacks are taken to differ as the ones it has."""
    typical = _complete(encoded).mean(axis=1)
    return np.stack([(vectors - typical[: len(vectors)]).mean(axis=0) + typical.mean(axis=0) for vectors in encoded])


def _complete(encoded: list[Vectors]) -> Vectors:
    """Stack the languages that lack no sentence; shape (sentences, languages, d)."""
    most = max(map(len, encoded))
    return np.stack([vectors for vectors in encoded if len(vectors) == most], axis=1)
