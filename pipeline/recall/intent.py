"""Recognize questions whose answer is linked to what they name, and does not name it: "who is affected if … stops".

The examples are in `intent_examples/`, in four languages, one question per line below its label. The classifier
compares a question with them by its words and by the vector that dense search has computed.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from pipeline.index.codes import Vector
from pipeline.index.encoder import Encoder
from pipeline.index.sentence_classifier import Examples, SentenceClassifier, is_fitted

# The settings of the classifier of statements (decision 0024).
EXAMPLES = Examples(
    "pipeline.recall",
    "intent_examples",
    ("none", "connected"),
    vector_scale=0.71,
    mark_scale=0.087,
    penalty=0.2,
    word_scale=0.55,
)

log = logging.getLogger(__name__)


class _Stopped(Exception):
    """Report that fitting was stopped; the next process fits the classifier."""


class _QueryEncoder:
    """An encoder that encodes texts as queries, until stopped: a question is compared with questions."""

    def __init__(self, encoder: Encoder, is_stopped: Callable[[], bool]) -> None:
        self._encode = encoder.encode_query
        self._is_stopped = is_stopped
        self.name = encoder.name
        self.dimension = encoder.dimension
        self.background = encoder.background
        self.passages = encoder.passages
        self.encode_query = encoder.encode_query

    def encode_documents(self, texts: Sequence[str]) -> Vector:
        """Encode texts in order; shape (len(texts), dimension)."""
        vectors: Vector = np.array([self._encode_unless_stopped(text) for text in texts], np.float32)
        return vectors

    def _encode_unless_stopped(self, text: str) -> Vector:
        if self._is_stopped():
            raise _Stopped
        return self._encode(text)


class QuestionIntents:
    """Keep a classifier of questions for each encoder. It is fitted once, in a thread, and stored in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._loaded: dict[str, SentenceClassifier] = {}
        self._fitting: dict[str, threading.Thread] = {}
        self._stopped = threading.Event()

    def weigh(self, encoder: Encoder, question: str, vector: Vector) -> float | None:
        """Return the probability that a question asks for something linked; None while the classifier is fitted."""
        classifier = self._loaded.get(encoder.name)
        if classifier is None:
            if not is_fitted([encoder.name], EXAMPLES, self._folder):
                self._fit_beside(encoder)
                return None
            classifier = self.load(encoder)
        return float(classifier.weigh([question], [vector[None]])[0, 1])

    def load(self, encoder: Encoder) -> SentenceClassifier:
        """Load the classifier of an encoder, or fit it."""
        classifier = SentenceClassifier.load([_QueryEncoder(encoder, self._stopped.is_set)], EXAMPLES, self._folder)
        self._loaded[encoder.name] = classifier
        return classifier

    def prepare(self, encoder: Encoder) -> None:
        """Load the classifier of an encoder, or fit it, before the first question needs it."""
        try:
            self.load(encoder)
        except _Stopped:
            return
        except OSError as error:
            log.warning("the classifier of questions cannot be stored: %s", error)

    def close(self) -> None:
        """Stop fitting: an interpreter that ends while a thread encodes aborts."""
        with self._lock:
            self._stopped.set()
            fitting = list(self._fitting.values())
        for thread in fitting:
            thread.join()

    def _fit_beside(self, encoder: Encoder) -> None:
        with self._lock:
            if encoder.name not in self._fitting and not self._stopped.is_set():
                thread = threading.Thread(target=partial(self.prepare, encoder), name="fit-intents", daemon=True)
                self._fitting[encoder.name] = thread
                thread.start()
