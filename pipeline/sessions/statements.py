"""Classify sentences by whether they last and by kind, with a classifier over sentence vectors.

The examples are in `examples/`, one sentence per line below its label.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from pipeline.index.encoder import Encoder
from pipeline.index.sentence_classifier import Examples, SentenceClassifier, is_fitted


class Label(StrEnum):
    """The class of a sentence."""

    NONE = "none"
    PREFERENCE = "preference"
    IDENTITY = "identity"
    DECISION = "decision"
    CORRECTION = "correction"
    FACT = "fact"
    RULE = "rule"
    DEADLINE = "deadline"
    GOAL = "goal"


LABELS = tuple(Label)
# Messages of a few turns.
MOST_READ = 64
# Starts the examples of what an agent says when an exchange settles something.
AGENT_MARK = "→ "
# Chosen by leave-one-out validation on the examples (decision 0024).
EXAMPLES = Examples(
    "pipeline.sessions", "examples", LABELS, vector_scale=0.71, mark_scale=0.087, penalty=0.2, word_scale=0.55
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, the probability that it lasts, its class if it does, and the probability of the class.

    `agreed` if the agent said it, and the person agreed. `updates` is the ID of the memory that it replaces, if a model
    names one.
    """

    sentence: str
    lasts: float
    label: Label
    certainty: float
    agreed: bool = False
    updates: str | None = None


class StatementClassifier:
    """Classify statements by the vectors of an encoder."""

    def __init__(self, classifier: SentenceClassifier) -> None:
        self._classifier = classifier

    @classmethod
    def load(cls, encoder: Encoder, folder: Path) -> "StatementClassifier":
        """Load the classifier of an encoder from a folder, or fit it and store it there."""
        return cls(SentenceClassifier.load([encoder], EXAMPLES, folder))

    @staticmethod
    def is_fitted(model: str, folder: Path) -> bool:
        """Return whether a folder contains the classifier of a model."""
        return is_fitted([model], EXAMPLES, folder)

    def classify(self, sentences: Sequence[str]) -> list[Statement]:
        """Return the class of each sentence, in order."""
        if not sentences:
            return []
        probabilities = self._classifier.weigh(sentences)
        best = probabilities[:, 1:].argmax(axis=1) + 1
        return [
            Statement(sentence, float(1 - row[0]), LABELS[label], float(row[label]))
            for sentence, row, label in zip(sentences, probabilities, best.tolist(), strict=True)
        ]


class StatementReader:
    """Read sentences with the classifier of their language, and each text once.

    Raises EncoderPending while an encoder is made.
    """

    def __init__(self, find_classifier: Callable[[str], StatementClassifier]) -> None:
        self._find_classifier = find_classifier
        self._classify = lru_cache(MOST_READ)(self._classify_once)

    def read(self, sentences: Sequence[str]) -> Sequence[Statement]:
        """Return the class of each sentence, in order; the language is that of all together."""
        return self._classify(tuple(sentences)) if sentences else ()

    def read_one(self, text: str) -> Statement:
        """Return the class of a text as a single sentence."""
        (statement,) = self.read([text])
        return statement

    def _classify_once(self, sentences: tuple[str, ...]) -> Sequence[Statement]:
        return self._find_classifier(" ".join(sentences)).classify(sentences)
