"""The screen stage: flag memories whose text asks the agent that reads it to act, in any phrasing.

Rules (`pipeline/text/instructions.py`) flag known phrasings when a memory is written. This stage judges the meaning of
each sentence: a classifier over sentence vectors, fitted on the examples in `injection_examples/`. A person's own words
are not judged, and imported texts are always shown as quotations (decision 0041).
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path

from pipeline.index.encoder import Encoder
from pipeline.index.sentence_classifier import Examples, SentenceClassifier, is_fitted
from pipeline.kernel.kinds import render_text
from pipeline.kernel.records import Memory, Source
from pipeline.kernel.records.digestion import WorkItem
from pipeline.kernel.store import changes, memories, work
from pipeline.kernel.store.database import Database
from pipeline.text.sentences import split_sentences

EXAMPLES = Examples(
    "pipeline.features.indexing",
    "injection_examples",
    ("none", "attack"),
    vector_scale=0.69,
    mark_scale=0.087,
    penalty=1.0,
)
# Chosen so that two of a hundred harmless texts are flagged (decision 0041).
THRESHOLD = 0.1
# Below this score by the English encoder alone, no labelled text has ever been flagged by both (decision 0041). Half of
# developers' sentences are, and the multilingual encoder costs twice as much as the English one.
CLEARLY_HARMLESS = -0.65
# Every further sentence is one more chance of a wrong flag, so longer texts need more evidence.
LENGTH_WEIGHT = 0.1
MAX_SENTENCES = 60
MAX_SENTENCE_CHARS = 400
MIN_WORDS = 3
SCREENED_SOURCES = frozenset({Source.AGENT, Source.AMBIENT})
# Lines of a paragraph are one text: a sentence may be wrapped anywhere.
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n|\n(?=[^\S\n]*[-*•#>|])|(?<=[:.!?])\n")


class InjectionClassifier:
    """Judge whether texts try to command the agent that reads them.

    With `first`, a classifier of fewer encoders, the other judges only sentences that are not clearly harmless by it.
    """

    def __init__(self, classifier: SentenceClassifier, first: SentenceClassifier | None = None) -> None:
        self._classifier = classifier
        self._first = first

    @classmethod
    def load(cls, encoders: Sequence[Encoder], folder: Path) -> "InjectionClassifier":
        """Load the classifier from a folder, or fit it and store it there."""
        first = SentenceClassifier.load(encoders[:1], EXAMPLES, folder) if len(encoders) > 1 else None
        return cls(SentenceClassifier.load(encoders, EXAMPLES, folder), first)

    @staticmethod
    def is_fitted(models: Sequence[str], folder: Path) -> bool:
        """Return whether a folder contains the classifier of some models."""
        return all(is_fitted(some, EXAMPLES, folder) for some in (models[:1], models))

    def find_attacks(self, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether a sentence asks its reader to act."""
        return [score >= THRESHOLD for score in self.score(texts)]

    def score(self, texts: Sequence[str]) -> list[float]:
        """Return the score of the most suspicious sentence of each text, lowered by the number of sentences."""
        sentences = [list_sentences(text) for text in texts]
        # In one call: a matrix product for each text would read all examples again.
        scores = iter(self._score_sentences([sentence for of_text in sentences for sentence in of_text]))
        return [
            max(islice(scores, len(of_text))) - LENGTH_WEIGHT * math.log(len(of_text)) if of_text else -math.inf
            for of_text in sentences
        ]

    def _score_sentences(self, sentences: Sequence[str]) -> list[float]:
        scores = (self._first or self._classifier).score(sentences)
        if self._first is not None:
            unclear = scores >= CLEARLY_HARMLESS
            scores[unclear] = self._classifier.score(list(compress(sentences, unclear)))
        listed: list[float] = scores.tolist()
        return listed


def list_sentences(text: str) -> list[str]:
    """Return the sentences of a text that are long enough to ask for something."""
    paragraphs = (" ".join(paragraph.split()) for paragraph in _PARAGRAPH.split(text))
    sentences = (sentence.strip() for paragraph in paragraphs for sentence in split_sentences(paragraph))
    return [sentence[:MAX_SENTENCE_CHARS] for sentence in sentences if len(sentence.split()) >= MIN_WORDS][
        :MAX_SENTENCES
    ]


def must_screen(memory: Memory) -> bool:
    """Return whether a memory's text may come from outside and is not flagged yet."""
    return memory.source in SCREENED_SOURCES and memory.said_by is None and not memory.instructs


@dataclass(frozen=True, slots=True)
class ScreenStage:
    """Flag memories of one workspace."""

    database: Database
    classifier: Callable[[], InjectionClassifier]

    def load(self) -> None:
        """Load the classifier with its encoders."""
        self.classifier()

    def run(self, items: Sequence[WorkItem], owner: str) -> None:
        """Judge each memory, then store flags and completion together."""
        with self.database.read() as db:
            screened = memories.by_seqs(db, [item.seq for item in items])
        texts = {seq: render_text(memory) for seq, memory in screened.items() if must_screen(memory)}
        attacks = set(compress(texts, self.classifier().find_attacks(list(texts.values()))))
        with self.database.write() as db:
            for item in work.complete(db, items, owner):
                if item.seq in attacks:
                    memory = screened[item.seq]
                    memories.update(db, item.seq, {"instructs": True}, memory.updated_at)
                    changes.append(db, changes.EDIT, [memory.id])
