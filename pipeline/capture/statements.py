"""Which sentences last, and what each of them is: a classifier over sentence vectors, learned from examples.

The examples stand in `examples/`, one sentence a line under what it is. A softmax regression with an L2 penalty is
fitted on their vectors once for each encoder, and kept beside the models.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from pipeline.index.encoder import Encoder

Matrix = NDArray[np.float64]

# Directions of meaning weigh as much against the marks of form as classes tell apart best.
VECTOR_SCALE, MARK_SCALE = 8.0, 0.5
PENALTY = 0.003
STEPS = 400
BATCH = 64


class Label(StrEnum):
    """What a sentence is."""

    NONE = "none"
    PREFERENCE = "preference"
    IDENTITY = "identity"
    DECISION = "decision"
    CORRECTION = "correction"
    FACT = "fact"
    RULE = "rule"
    DEADLINE = "deadline"


LABELS = tuple(Label)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, how probably it lasts, what it is if it does, and how probably it is that."""

    sentence: str
    lasts: float
    label: Label
    certainty: float


class StatementClassifier:
    """Tell statements by the vectors of an encoder."""

    def __init__(self, encoder: Encoder, weights: Matrix) -> None:
        self._encoder = encoder
        self._weights = weights

    @classmethod
    def load(cls, encoder: Encoder, folder: Path) -> "StatementClassifier":
        """Return the classifier of an encoder: the one that is kept in a folder, or a new one that is kept there."""
        file = folder / f"{re.sub(r'[^A-Za-z0-9.-]+', '-', encoder.name)}-{_digest()}.npy"
        try:
            return cls(encoder, np.load(file, allow_pickle=False))
        except (OSError, ValueError, EOFError, BadZipFile):
            weights = fit(encoder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = file.with_suffix(".new.npy")
        np.save(draft, weights, allow_pickle=False)
        draft.replace(file)
        return cls(encoder, weights)

    def classify(self, sentences: Sequence[str]) -> list[Statement]:
        """Return what each sentence is, in their order."""
        if not sentences:
            return []
        probabilities = _softmax(_features(self._encoder, sentences) @ self._weights)
        best = probabilities[:, 1:].argmax(axis=1) + 1
        return [
            Statement(sentence, float(1 - row[0]), LABELS[label], float(row[label]))
            for sentence, row, label in zip(sentences, probabilities, best.tolist(), strict=True)
        ]


@cache
def list_examples() -> tuple[tuple[str, Label], ...]:
    """Return every example: a sentence and what it is."""
    found: list[tuple[str, Label]] = []
    for file in sorted(files("pipeline.capture").joinpath("examples").iterdir(), key=lambda one: one.name):
        label = Label.NONE
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("["):
                label = Label(line.strip("[]"))
            elif line:
                found.append((line, label))
    return tuple(found)


def _digest() -> str:
    settings = (VECTOR_SCALE, MARK_SCALE, PENALTY, STEPS)
    return hashlib.sha256(repr((settings, list_examples())).encode()).hexdigest()[:12]


def fit(encoder: Encoder) -> Matrix:
    """Return the weights (features, labels) of a softmax regression by accelerated gradient descent (Nesterov 1983)."""
    sentences, labels = zip(*list_examples(), strict=True)
    x = _features(encoder, sentences)
    wanted = np.array([[label is one for one in LABELS] for label in labels], np.float64)
    penalty = np.full((x.shape[1], 1), PENALTY)
    # The constant shifts for free.
    penalty[-1] = 0
    step = 1 / (0.5 * float(np.linalg.eigvalsh(x.T @ x / len(x))[-1]) + PENALTY)
    weights = ahead = np.zeros((x.shape[1], len(LABELS)))
    for number in range(STEPS):
        gradient = x.T @ (_softmax(x @ ahead) - wanted) / len(x) + penalty * ahead
        following = ahead - step * gradient
        ahead = following + number / (number + 3) * (following - weights)
        weights = following
    return weights


def _features(encoder: Encoder, sentences: Sequence[str]) -> Matrix:
    vectors = np.concatenate(
        [encoder.encode_documents(sentences[start : start + BATCH]) for start in range(0, len(sentences), BATCH)]
    )
    marks = np.array([_marks(sentence) for sentence in sentences], np.float64)
    return np.hstack([vectors * VECTOR_SCALE, marks * MARK_SCALE, np.ones((len(sentences), 1))])


_NAMES_CODE = re.compile(r"[`/_]|\w\.\w")


def _marks(sentence: str) -> tuple[float, ...]:
    """Return what the form of a sentence says beside its meaning, in any language."""
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


def _softmax(scores: Matrix) -> Matrix:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    result: Matrix = powers / powers.sum(axis=1, keepdims=True)
    return result
