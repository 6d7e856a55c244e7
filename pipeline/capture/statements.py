"""Which sentences last, and what each of them is: a classifier over sentence vectors, learned from examples.

The examples stand in `examples/`, one sentence a line under what it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pipeline.index.encoder import Encoder
from pipeline.index.sentence_classifier import Example, Examples, SentenceClassifier, list_examples as read_examples


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
# Directions of meaning weigh as much against the marks of form as classes tell apart best.
EXAMPLES = Examples("pipeline.capture", "examples", LABELS, vector_scale=8.0, mark_scale=0.5, penalty=0.003)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, how probably it lasts, what it is if it does, and how probably it is that."""

    sentence: str
    lasts: float
    label: Label
    certainty: float


class StatementClassifier:
    """Tell statements by the vectors of an encoder."""

    def __init__(self, classifier: SentenceClassifier) -> None:
        self._classifier = classifier

    @classmethod
    def load(cls, encoder: Encoder, folder: Path) -> "StatementClassifier":
        """Return the classifier of an encoder: the one that is kept in a folder, or a new one that is kept there."""
        return cls(SentenceClassifier.load([encoder], EXAMPLES, folder))

    def classify(self, sentences: Sequence[str]) -> list[Statement]:
        """Return what each sentence is, in their order."""
        if not sentences:
            return []
        probabilities = self._classifier.weigh(sentences)
        best = probabilities[:, 1:].argmax(axis=1) + 1
        return [
            Statement(sentence, float(1 - row[0]), LABELS[label], float(row[label]))
            for sentence, row, label in zip(sentences, probabilities, best.tolist(), strict=True)
        ]


def list_examples() -> tuple[Example, ...]:
    """Return every example: a sentence and what it is."""
    return read_examples(EXAMPLES)
