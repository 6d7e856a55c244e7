"""Classifiers of sentences over sentence vectors, fitted on examples by kernel regression.

The examples of a classifier are text files, with one sentence per line below the name of its label in brackets. The
weights are fitted once for each set of encoders and are kept next to the models. Source: Saunders, Gammerman and Vovk,
Ridge Regression Learning Algorithm in Dual Variables, 1998.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, cast
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from config.operating_system import make_folder, publish
from pipeline.index.encoder import Encoder
from pipeline.text.sentences import QUESTION_MARKS

Matrix = NDArray[np.floating[Any]]
Example = tuple[str, str]

BATCH = 64
# Changes when the weights of the same examples change.
FIT = 2
# The largest error of the equations of a fit, as a share.
TOLERANCE = 1e-7


@dataclass(frozen=True, slots=True)
class Examples:
    """Where labelled sentences are, which labels they have in order, and how a regression is fitted on them.

    `vector_scale`, `mark_scale` and `word_scale` weigh the meaning of a sentence, the marks of its form, and its words;
    `penalty` is that of L2.
    """

    package: str
    folder: str
    labels: tuple[str, ...]
    vector_scale: float
    mark_scale: float
    penalty: float
    word_scale: float = 0.0


@cache
def digest_examples(examples: Examples) -> str:
    """Return a short digest of the examples and of the settings of the fit."""
    scales = (examples.vector_scale, examples.mark_scale, examples.penalty, examples.word_scale)
    content = ((examples.labels, *scales, FIT), list_examples(examples))
    return hashlib.sha256(repr(content).encode()).hexdigest()[:12]


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
    """Classify sentences by their similarity to labelled examples, in meaning, form and words."""

    def __init__(self, encoders: Sequence[Encoder], examples: Examples, fitted: Matrix) -> None:
        self._encoders = encoders
        self._examples = examples
        width = _count_features(encoders)
        self._known, self._weights = fitted[:, :width], fitted[:, width:]
        self._squares = _row_squares(self._known)
        # Most classifiers compare no words.
        self._words = KnownWords([text for text, _ in list_examples(examples)]) if examples.word_scale else None

    @classmethod
    def load(cls, encoders: Sequence[Encoder], examples: Examples, folder: Path) -> "SentenceClassifier":
        """Load the classifier from a folder, or fit it and store it there."""
        return cls(encoders, examples, _load(encoders, examples, folder))

    def weigh(self, sentences: Sequence[str], vectors: Sequence[Matrix] | None = None) -> Matrix:
        """Return the estimated probability of each label for each sentence; shape (sentences, labels).

        `vectors` are the vectors of the sentences by each encoder, if they are known.
        """
        result: Matrix = np.clip((1 + self._score(sentences, vectors)) / 2, 0, 1)
        return result

    def score(self, sentences: Sequence[str]) -> Matrix:
        """Return a score for each sentence: about 1 for the last label, about -1 for the others."""
        return self._score(sentences)[:, -1]

    def _score(self, sentences: Sequence[str], vectors: Sequence[Matrix] | None = None) -> Matrix:
        """Return a score of each label for each sentence; shape (sentences, labels)."""
        if not sentences:
            return np.empty((0, self._weights.shape[1]))
        encoded = _encode(self._encoders, sentences) if vectors is None else vectors
        features = _join_features(encoded, sentences, self._examples).astype(self._known.dtype)
        parts = []
        # In parts: the kernel of all sentences of a batch of long texts would take tens of megabytes.
        for start in range(0, len(features), BATCH):
            similarities = _similarities(features[start : start + BATCH], self._known, self._squares)
            if self._words is not None:
                similarities *= self._words.compare(sentences[start : start + BATCH], self._examples.word_scale)
            parts.append(similarities @ self._weights)
        return np.concatenate(parts)


def fit(encoders: Sequence[Encoder], examples: Examples) -> Matrix:
    """Return the features of each example and its weights, one per label; shape (examples, features + labels)."""
    sentences, labels = zip(*list_examples(examples), strict=True)
    # Single precision gives the same probabilities to three digits, in half the memory and time.
    features = _join_features(_encode(encoders, sentences), sentences, examples).astype(np.float32)
    similarities = _similarities(features, features)
    words = KnownWords(sentences)
    # In parts: a second matrix of all pairs of examples would take tens of megabytes.
    for start in range(0, len(sentences), BATCH):
        part = slice(start, start + BATCH)
        similarities[part] *= words.compare(sentences[part], examples.word_scale)
    similarities.flat[:: len(sentences) + 1] += examples.penalty
    expected = np.array([[1 if label == column else -1 for column in examples.labels] for label in labels], np.float32)
    return np.hstack([features, solve(similarities, expected)])


def solve(matrix: Matrix, right: Matrix) -> Matrix:
    """Solve `matrix @ x = right` by conjugate gradients, for a symmetric and positive definite matrix.

    LAPACK would copy the matrix in double precision: for the statements of sessions, half a gigabyte.
    Source: Hestenes and Stiefel, Methods of Conjugate Gradients for Solving Linear Systems, 1952.
    """
    solution, residual = np.zeros(right.shape), right.astype(np.float64)
    direction, squares = residual, _column_squares(residual)
    enough = TOLERANCE**2 * squares
    while (squares > enough).any():
        # In double precision, as the result of a product in single precision has four digits.
        product = np.concatenate(
            [matrix[start : start + BATCH].astype(np.float64) @ direction for start in range(0, len(matrix), BATCH)]
        )
        # A solved column has no direction left.
        steps = squares / np.maximum(np.einsum("ij,ij->j", direction, product), np.finfo(np.float64).tiny)
        solution += steps * direction
        residual = residual - steps * product
        before, squares = squares, _column_squares(residual)
        direction = residual + squares / np.maximum(before, np.finfo(np.float64).tiny) * direction
    return solution.astype(matrix.dtype)


def _column_squares(columns: Matrix) -> Matrix:
    return cast(Matrix, np.einsum("ij,ij->j", columns, columns))


class KnownWords:
    """Compare the words of sentences with those of known sentences: words, pairs, and how a sentence starts."""

    def __init__(self, sentences: Sequence[str]) -> None:
        # Hashes instead of the words take a megabyte instead of twenty.
        hashes = [_hash_forms(sentence) for sentence in sentences]
        sizes = [len(own) for own in hashes]
        self._sizes = np.sqrt(np.maximum(1, sizes), dtype=np.float32)
        joined, rows = np.concatenate(hashes), np.repeat(np.arange(len(sizes), dtype=np.uint16), sizes)
        order = np.argsort(joined)
        self._hashes, self._rows = joined[order], rows[order]

    def compare(self, sentences: Sequence[str], scale: float) -> Matrix:
        """Return the Gaussian kernel of the sets of words; shape (sentences, known sentences)."""
        cosines = np.zeros((len(sentences), len(self._sizes)), np.float32)
        for number, sentence in enumerate(sentences):
            hashes = _hash_forms(sentence)
            starts, ends = (np.searchsorted(self._hashes, hashes, side).tolist() for side in ("left", "right"))
            if shared := [self._rows[start:end] for start, end in zip(starts, ends, strict=True) if start < end]:
                cosines[number] = np.bincount(np.concatenate(shared), minlength=len(self._sizes))
            cosines[number] /= self._sizes * max(1, len(hashes)) ** 0.5
        cosines -= 1
        cosines *= 2 * scale**2
        return cast(Matrix, np.exp(cosines, out=cosines))


_WORD = re.compile(r"\w+|[^\w\s]")
_DIGIT = re.compile(r"\d")


def _hash_forms(sentence: str) -> NDArray[np.int64]:
    """Return the hashes of the words of a sentence, its pairs of words, and its first words; a digit is any digit."""
    words = _WORD.findall(_DIGIT.sub("0", sentence.lower()))
    pairs = [" ".join(pair) for pair in pairwise(["^", *words, "$"])]
    starts = ["^ " + " ".join(words[:count]) for count in (2, 3)]
    return np.array(list({hash(form) for form in (*words, *pairs, *starts)}), np.int64)


def _similarities(left: Matrix, right: Matrix, right_squares: Matrix | None = None) -> Matrix:
    """Return the Gaussian kernel of the rows of two matrices; shape (left rows, right rows)."""
    squares = _row_squares(right) if right_squares is None else right_squares
    similarities = 2 * left @ right.T
    similarities -= _row_squares(left)[:, None]
    similarities -= squares
    return cast(Matrix, np.exp(similarities, out=similarities))


def _row_squares(rows: Matrix) -> Matrix:
    return cast(Matrix, np.einsum("ij,ij->i", rows, rows))


def _load(encoders: Sequence[Encoder], examples: Examples, folder: Path) -> Matrix:
    """Load the fitted matrix from a folder, or fit it and store it there."""
    file = _file_of([encoder.name for encoder in encoders], examples, folder)
    with suppress(OSError, ValueError, EOFError, BadZipFile):
        loaded: Matrix = np.load(file, allow_pickle=False)
        # The digest does not cover the marks: another version may have stored others under the same name.
        if loaded.shape == (len(list_examples(examples)), _count_features(encoders) + len(examples.labels)):
            return loaded
    fitted = fit(encoders, examples)
    make_folder(folder)
    # Processes may fit at the same time, each into a file of its own.
    draft = file.with_suffix(f".{os.getpid()}.npy")
    np.save(draft, fitted, allow_pickle=False)
    publish(draft, file)
    return fitted


def is_fitted(models: Sequence[str], examples: Examples, folder: Path) -> bool:
    """Return whether a folder contains the weights for the encoders of some models."""
    return _file_of(models, examples, folder).exists()


def _file_of(models: Sequence[str], examples: Examples, folder: Path) -> Path:
    names = "-".join(re.sub(r"[^A-Za-z0-9.-]+", "-", model) for model in models)
    return folder / f"{names}-{digest_examples(examples)}.npy"


def _encode(encoders: Sequence[Encoder], sentences: Sequence[str]) -> list[Matrix]:
    return [
        np.concatenate(
            [encoder.encode_documents(sentences[start : start + BATCH]) for start in range(0, len(sentences), BATCH)]
        )
        for encoder in encoders
    ]


def _join_features(vectors: Sequence[Matrix], sentences: Sequence[str], examples: Examples) -> Matrix:
    marks = np.array([_marks(sentence) for sentence in sentences], np.float64)
    scaled = [encoded * examples.vector_scale for encoded in vectors]
    return np.hstack([*scaled, marks * examples.mark_scale, np.ones((len(sentences), 1))])


def _count_features(encoders: Sequence[Encoder]) -> int:
    return sum(encoder.dimension for encoder in encoders) + len(_marks("")) + 1


_NAMES_CODE = re.compile(r"[`/_]|\w\.\w")


def _marks(sentence: str) -> tuple[float, ...]:
    """Return the formal features of a sentence in any language."""
    words = sentence.split()
    return (
        sentence.rstrip().endswith(QUESTION_MARKS),
        any(sign.isdigit() for sign in sentence),
        _NAMES_CODE.search(sentence) is not None,
        float(np.log(len(words) + 1)) - 2,
        len(words) < 4,
        sentence[:1].islower(),
        "," in sentence,
        ":" in sentence,
    )
