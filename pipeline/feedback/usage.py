"""Recalls and questions: counted in memory, and written together."""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from sqlite3 import Connection

from pipeline.store import languages, memory_usage, predictions
from pipeline.store.predictions import MAX_QUESTION_CHARS
from pipeline.text.languages import is_foreign
from pipeline.text.redaction import redact

# Memories that wait to be counted; beyond them only those that wait already are. So many take a web server's writes
# some 20 ms once in a while, and agents recall far fewer in five seconds.
MAX_MEMORIES = 1024


# Distinct questions that wait to be written; any beyond them are only counted.
MAX_QUESTIONS = 256


@dataclass(frozen=True, slots=True)
class NotedUsage:
    """Recalls by row number; how many questions were asked, and how often each whose text may be looked at.

    `answered` is how many questions a stored answer answered.
    """

    accesses: Mapping[int, int] = field(default_factory=dict)
    questions: int = 0
    texts: Mapping[str, int] = field(default_factory=dict)
    answered: int = 0


class UsageBuffer:
    """Count recalls and questions, from any thread, until the writer takes the counts.

    A crash loses the notes of the last seconds. That is accepted: they weigh what fades and help to foresee what is
    asked next, and an acknowledged memory is never among what is lost.
    """

    def __init__(self, max_memories: int = MAX_MEMORIES, max_questions: int = MAX_QUESTIONS) -> None:
        self._lock = threading.Lock()
        self._max_memories = max_memories
        self._max_questions = max_questions
        self._accesses: Counter[int] = Counter()
        self._questions = self._answered = 0
        self._texts: Counter[str] = Counter()

    def add_accesses(self, seqs: Iterable[int]) -> None:
        """Count one recall of each memory."""
        with self._lock:
            for seq in seqs:
                self._count_access(seq, 1)

    def add_question(self, text: str, *, is_answered: bool = False) -> None:
        """Note that a question was asked, and whether a stored answer answered it; a long one is only counted."""
        with self._lock:
            self._questions += 1
            self._answered += is_answered
            if len(text) <= MAX_QUESTION_CHARS:
                self._count_text(text, 1)

    def take(self) -> NotedUsage:
        """Return the notes and begin anew."""
        with self._lock:
            noted = NotedUsage(self._accesses, self._questions, self._texts, self._answered)
            self._accesses, self._texts = Counter(), Counter()
            self._questions = self._answered = 0
        return noted

    def drop_questions(self) -> None:
        """Forget the texts of the questions; that they were asked stays counted."""
        with self._lock:
            self._texts.clear()

    def put_back(self, noted: NotedUsage) -> None:
        """Note again what was taken and could not be written."""
        with self._lock:
            self._questions += noted.questions
            self._answered += noted.answered
            for seq, count in noted.accesses.items():
                self._count_access(seq, count)
            for text, count in noted.texts.items():
                self._count_text(text, count)

    def _count_access(self, seq: int, count: int) -> None:
        if seq in self._accesses or len(self._accesses) < self._max_memories:
            self._accesses[seq] += count

    def _count_text(self, text: str, count: int) -> None:
        if text in self._texts or len(self._texts) < self._max_questions:
            self._texts[text] += count


def write_usage(db: Connection, noted: NotedUsage, at: str) -> int:
    """Write taken notes within a transaction; return how many memories were counted.

    Nothing enters the change log: neither a recall nor a question changes an answer before the next nightly job. Of a
    question that holds a secret no word is kept.
    """
    if noted.questions:
        texts = {text: times for text, times in noted.texts.items() if redact(text).text == text}
        predictions.note(db, noted.questions, texts, at, noted.answered)
    return memory_usage.add_accesses(db, noted.accesses, at) if noted.accesses else 0


def note_languages(db: Connection, noted: NotedUsage, *, embed_again: bool) -> None:
    """Note in which languages was asked, within a transaction, until that has shown another language than English."""
    if noted.texts and languages.find_other_languages(db) is None:
        foreign = sum(times for text, times in noted.texts.items() if is_foreign(text))
        shown = languages.note_questions(db, foreign, sum(noted.texts.values()))
        if shown is not None:
            languages.record_other_languages(db, shown, embed_again=embed_again)
