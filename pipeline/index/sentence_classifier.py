"""Classifiers of sentences over sentence vectors, fitted on examples: a softmax regression and a kernel regression.

The examples of a classifier are text files, with one sentence per line below the name of its label in brackets. The
weights are fitted once for each set of encoders and are kept next to the models.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from pipeline.index.encoder import Encoder

Matrix = NDArray[np.floating[Any]]
Example = tuple[str, str]

STEPS = 400
BATCH = 64


@dataclass(frozen=True, slots=True)
class Examples:
    """Where labelled sentences are, which labels they have in order, and how a regression is fitted on them.

    `vector_scale` and `mark_scale` weigh the meaning of a sentence and the marks of its form; `penalty` is that of L2.
    """

    package: str
    folder: str
    labels: tuple[str, ...]
    vector_scale: float
    mark_scale: float
    penalty: float

    def digest(self) -> str:
        """Return a short digest of the examples and of the settings of the fit."""
        settings = (self.labels, self.vector_scale, self.mark_scale, self.penalty, STEPS)
        return hashlib.sha256(repr((settings, list_examples(self))).encode()).hexdigest()[:12]


@cache
def list_examples(examples: Examples) -> tuple[Example, ...]:
    """Return every labelled sentence."""
    labelled: list[Example] = []
    for file in sorted(files(examples.package).joinpath(examples.folder).iterdir(), key=lambda file: file.name):
        label = examples.labels[0]
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("["):
                label = line.strip("[]")
            elif line:
                labelled.append((line, label))
    return tuple(labelled)


class SentenceClassifier:
    """Classify sentences by the vectors of one or more encoders and by the marks of their form."""

    def __init__(self, encoders: Sequence[Encoder], examples: Examples, weights: Matrix) -> None:
        self._encoders = encoders
        self._examples = examples
        self._weights = weights

    @classmethod
    def load(cls, encoders: Sequence[Encoder], examples: Examples, folder: Path) -> "SentenceClassifier":
        """Load the classifier from a folder, or fit it and store it there."""
        return cls(encoders, examples, _load(encoders, examples, folder, fit))

    def weigh(self, sentences: Sequence[str]) -> Matrix:
        """Return the probability of each label for each sentence; shape (sentences, labels)."""
        if not sentences:
            return np.empty((0, len(self._examples.labels)))
        return softmax(_features(self._encoders, sentences, self._examples) @ self._weights)


def fit(encoders: Sequence[Encoder], examples: Examples) -> Matrix:
    """Return the weights (features, labels) of a softmax regression by accelerated gradient descent (Nesterov 1983)."""
    sentences, labels = zip(*list_examples(examples), strict=True)
    x = _features(encoders, sentences, examples)
    expected = np.array([[label == column for column in examples.labels] for label in labels], np.float64)
    penalty = np.full((x.shape[1], 1), examples.penalty)
    # The constant shifts for free.
    penalty[-1] = 0
    step = 1 / (0.5 * float(np.linalg.eigvalsh(x.T @ x / len(x))[-1]) + examples.penalty)
    weights = ahead = np.zeros((x.shape[1], len(examples.labels)))
    for number in range(STEPS):
        gradient = x.T @ (softmax(x @ ahead) - expected) / len(x) + penalty * ahead
        following = ahead - step * gradient
        ahead = following + number / (number + 3) * (following - weights)
        weights = following
    return weights


class SimilarityClassifier:
    """Classify sentences by their similarity to labelled examples: the second label against the first."""

    def __init__(self, encoders: Sequence[Encoder], examples: Examples, fitted: Matrix) -> None:
        self._encoders = encoders
        self._examples = examples
        self._known, self._weights = fitted[:, :-1], fitted[:, -1]

    @classmethod
    def load(cls, encoders: Sequence[Encoder], examples: Examples, folder: Path) -> "SimilarityClassifier":
        """Load the classifier from a folder, or fit it and store it there."""
        return cls(encoders, examples, _load(encoders, examples, folder, fit_similarity))

    def score(self, sentences: Sequence[str]) -> Matrix:
        """Return a score for each sentence: about 1 for the second label, about -1 for the first."""
        if not sentences:
            return np.empty(0)
        features = _features(self._encoders, sentences, self._examples).astype(self._known.dtype)
        result: Matrix = _similarities(features, self._known) @ self._weights
        return result


def fit_similarity(encoders: Sequence[Encoder], examples: Examples) -> Matrix:
    """Return the features of each example and its weight, by kernel ridge regression; shape (examples, features + 1).

    Source: Saunders, Gammerman and Vovk, Ridge Regression Learning Algorithm in Dual Variables, 1998.
    """
    sentences, labels = zip(*list_examples(examples), strict=True)
    features = _features(encoders, sentences, examples)
    expected = np.array([1.0 if label == examples.labels[1] else -1.0 for label in labels])
    similarities = _similarities(features, features)
    weights = np.linalg.solve(similarities + examples.penalty * np.eye(len(labels)), expected)
    # Half the memory of a worker, and the same scores to six digits.
    return np.hstack([features, weights[:, None]]).astype(np.float32)


def _similarities(left: Matrix, right: Matrix) -> Matrix:
    """Return the Gaussian kernel of the rows of two matrices; shape (left rows, right rows)."""
    squares = [np.einsum("ij,ij->i", rows, rows) for rows in (left, right)]
    result: Matrix = np.exp(2 * left @ right.T - squares[0][:, None] - squares[1])
    return result


def _load(
    encoders: Sequence[Encoder], examples: Examples, folder: Path, make: Callable[[Sequence[Encoder], Examples], Matrix]
) -> Matrix:
    """Load the fitted matrix from a folder, or fit it and store it there."""
    names = "-".join(re.sub(r"[^A-Za-z0-9.-]+", "-", encoder.name) for encoder in encoders)
    file = folder / f"{names}-{examples.digest()}.npy"
    with suppress(OSError, ValueError, EOFError, BadZipFile):
        loaded: Matrix = np.load(file, allow_pickle=False)
        return loaded
    fitted = make(encoders, examples)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_suffix(".new.npy")
    np.save(draft, fitted, allow_pickle=False)
    draft.replace(file)
    return fitted


def _features(encoders: Sequence[Encoder], sentences: Sequence[str], examples: Examples) -> Matrix:
    vectors = [
        np.concatenate(
            [encoder.encode_documents(sentences[start : start + BATCH]) for start in range(0, len(sentences), BATCH)]
        )
        for encoder in encoders
    ]
    marks = np.array([_marks(sentence) for sentence in sentences], np.float64)
    scaled = [encoded * examples.vector_scale for encoded in vectors]
    return np.hstack([*scaled, marks * examples.mark_scale, np.ones((len(sentences), 1))])


_NAMES_CODE = re.compile(r"[`/_]|\w\.\w")


def _marks(sentence: str) -> tuple[float, ...]:
    """Return the formal features of a sentence in any language."""
    words = sentence.split()
    return (
        sentence.rstrip().endswith(("?", "？")),
        any(sign.isdigit() for sign in sentence),
        _NAMES_CODE.search(sentence) is not None,
        float(np.log(len(words) + 1)) - 2,
        len(words) < 4,
        sentence[:1].islower(),
        "," in sentence,
        ":" in sentence,
    )


def softmax(scores: Matrix) -> Matrix:
    """Return scores as probabilities, row by row."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    result: Matrix = powers / powers.sum(axis=1, keepdims=True)
    return result
