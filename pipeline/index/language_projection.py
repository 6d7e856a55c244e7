"""The last layer of the multilingual encoder: it removes language and prompt from vectors.

A multilingual encoder puts a text closer to others of its language than to others of its meaning. The difference of
the mean vectors of languages is mostly that, if each says the same (Libovický, Rosa and Fraser 2020, "On the language
neutrality of pre-trained multilingual representations"). The directions of these differences are projected out;
directions in which translations still vary are shrunk (within-class covariance normalization: Hatch, Kajarekar and
Stolcke 2006).
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

import numpy as np

from pipeline.index.bert_graph import LastLayer
from pipeline.index.encoder import Vectors

# The same sentences, in the same order, in each language: complete in some languages, the first few in the others.
SENTENCES: Final = Path(__file__).with_name("parallel.json")
_LEAST_SHARE: Final = 1e-4
# The share of the mean variance added to each; chosen on separate sentences (decision 0006).
_SHRINKAGE: Final = 1.0


def compute_projection(encode: Callable[[list[str]], Vectors], query_prompt: str, document_prompt: str) -> LastLayer:
    """Compute the layer from the vectors of an encoder without it."""
    languages = list(json.loads(SENTENCES.read_text(encoding="utf-8")).values())
    ends = np.cumsum([len(sentences) for sentences in languages])[:-1]
    # All languages together: encoders group texts of similar length.
    queries, documents = (
        np.split(encode([prompt + sentence for sentences in languages for sentence in sentences]), ends)
        for prompt in (query_prompt, document_prompt)
    )
    centre, projection = neutral_projection(_means(queries), _means(documents))
    translations = _complete(queries + documents)
    projection = within_class_normalization(translations @ projection) @ projection
    return LastLayer(projection, -projection @ centre)


def neutral_projection(queries: Vectors, documents: Vectors) -> tuple[Vectors, Vectors]:
    """Compute the center and the projection that align languages and prompts; shapes (d,) and (d, d).

    Both arguments have one mean vector per language; shape (languages, d).
    """
    means = (queries + documents) / 2
    centre = means.mean(axis=0)
    differences = np.vstack([means - centre, (queries - documents).mean(axis=0, keepdims=True)])
    _, sizes, directions = np.linalg.svd(differences, full_matrices=False)
    removed = directions[sizes > _LEAST_SHARE * sizes[0]]
    projection = np.eye(len(centre), dtype=np.float32) - removed.T @ removed
    return centre, projection


def within_class_normalization(translations: Vectors) -> Vectors:
    """Compute the map that shrinks directions in which translations vary; shape (d, d).

    The argument has each sentence in several forms; shape (sentences, forms, d). Sizes stay about the same.
    """
    deviations = (
        (translations - translations.mean(axis=1, keepdims=True)).reshape(-1, translations.shape[-1]).astype(np.float64)
    )
    variances, directions = np.linalg.eigh(deviations.T @ deviations / len(deviations))
    relative = variances.clip(0) / variances.mean()
    return cast(Vectors, ((directions / np.sqrt(relative + _SHRINKAGE)) @ directions.T).astype(np.float32))


def _means(encoded: list[Vectors]) -> Vectors:
    """Average each language's sentences; missing sentences are assumed to differ like the present ones."""
    typical = _complete(encoded).mean(axis=1)
    return np.stack([(vectors - typical[: len(vectors)]).mean(axis=0) + typical.mean(axis=0) for vectors in encoded])


def _complete(encoded: list[Vectors]) -> Vectors:
    """Stack the languages without missing sentences; shape (sentences, languages, d)."""
    most = max(map(len, encoded))
    return np.stack([vectors for vectors in encoded if len(vectors) == most], axis=1)
