"""What was asked lately, noted in memory and written together with the touches.

A crash loses the notes of the last seconds, which is accepted: they only help to foresee what is asked next.
"""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from sqlite3 import Connection

from pipeline.store import predictions
from pipeline.store.predictions import MAX_QUESTION_CHARS
from pipeline.text.redaction import redact

# Distinct questions that wait to be written; any beyond them are only counted.
MOST = 256


@dataclass(frozen=True, slots=True)
class Asked:
    """How many questions were asked, and how often each of those whose text may be kept."""

    total: int = 0
    texts: Mapping[str, int] = field(default_factory=dict)


class QuestionBuffer:
    """Note questions, from any thread, until somebody takes them."""

    def __init__(self, most: int = MOST) -> None:
        self._lock = threading.Lock()
        self._most = most
        self._total = 0
        self._texts: Counter[str] = Counter()

    def note(self, text: str) -> None:
        """Note that a question was asked; one that is too long is only counted."""
        with self._lock:
            self._total += 1
            if len(text) <= MAX_QUESTION_CHARS and (text in self._texts or len(self._texts) < self._most):
                self._texts[text] += 1

    def take(self) -> Asked:
        """Return the notes and begin anew; a question that holds a secret is only counted."""
        with self._lock:
            total, self._total = self._total, 0
            texts, self._texts = self._texts, Counter()
        return Asked(total, {text: times for text, times in texts.items() if redact(text).text == text})


def write_questions(db: Connection, asked: Asked, at: str) -> None:
    """Write taken notes within a transaction.

    Nothing enters the change log: a question changes no answer.
    """
    if asked.total:
        predictions.note(db, asked.total, asked.texts, at)
