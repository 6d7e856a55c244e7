"""Recognize no-save commands: "don't remember this", "forget what I just said", "don't save anything today".

The classifier is a ridge regression over words and word meanings, fitted on `nosave_examples/` at first use. It needs
no encoder, because it must judge a prompt before anything of it is stored, also while no encoder is loaded (decision
0046). A message without a word of `lexicon/nosave.toml` costs one expression.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from itertools import combinations, pairwise
from math import log
from typing import TYPE_CHECKING

from pipeline.sessions.orders.commands import read_line
from pipeline.sessions.orders.forms import drop_idioms, may_purge, may_refuse_record, orders_purge, refuses_record
from pipeline.text.lexicon import load_lexicon
from pipeline.text.own_words import is_private, list_own_lines
from pipeline.text.sentences import split_sentences, split_typed_sentences
from pipeline.text.text_cache import cache_by_text

if TYPE_CHECKING:
    from pipeline.index.sentence_classifier import Matrix

# Minimum score of the commands together. Higher loses secrets, lower loses memories. It rises with the number of texts
# of a message and with each word of a text beyond SHORT_COMMAND: more words look like a command by chance.
MIN_SCORE = 0.41
PER_TEXT = 0.05
PER_WORD = 0.02
SHORT_COMMAND = 15
# Of a message, the first and the last sentences are judged: a command is where a person starts or ends.
MOST_SENTENCES = 40
LONGEST_SENTENCE = 400
# A short message is also judged as one text: its command may need both of its sentences.
SHORT_MESSAGE = 3
MOST_TO_DELETE = 8
MOST_CACHED = 256

_WEIGHTS = {"concept": 1.0, "word": 0.7, "next": 0.7, "three": 0.6, "later": 0.5, "both": 0.4, "length": 0.5}
_EDGE = ("^",)
_WINDOW = 5
_MIN_EXAMPLES = 3
_PENALTY = 10.0
_LENGTH = 6.0
# Marks separate who acts from what is refused: ", don't keep" is said to the assistant, "it doesn't keep" is not.
_TOKEN = re.compile(r"\w+|[?:,;.!]")
# Two to five words before a colon.
_LABEL = re.compile(r"(?:[^\s:]+\s){1,4}[^\s:]*\s?:")
# An order about a file: its object follows the verb, and nothing names the message or the memory.
_KEEPING = frozenset({"keep", "write"})
_ABOUT_TALK = frozenset({"memory", "said", "heard", "aside", "private", "learning", "remember", "forget", "session"})
_OBJECT_WORDS = 6
_FILE_NAME = re.compile(r"[\w/-]+\.(?:md|txt|rst|json|ya?ml|toml|csv|log|py|ts|js|sql|html?|ini|env)\b", re.IGNORECASE)
_MARKS = frozenset(":,;.!?") | {"that", "dass", "que", "che", "dat"}
_BRIEF_WORDS = 5
_SESSION_CONCEPTS = frozenset({"session", "span", "pause", "avoid", "private", "aside", "switch", "over", "learning"})
_NEGATED = re.compile(r"n['’]t\b")

# The kind of a feature, and its value.
Feature = tuple[str, str]


class NoSave(StrEnum):
    """What a person does not want to be kept, or that they allow it again.

    A `TURN` names what was said before, and deletes it. A `DOUBTFUL_TURN` may mean it.
    """

    SENTENCE = "sentence"
    TURN = "turn"
    DOUBTFUL_TURN = "doubtful turn"
    SESSION = "session"
    RESUME = "resume"


# The classifier only guesses: what it takes for an order about the turn before is doubtful.
LABELS = ("none", NoSave.SENTENCE, NoSave.TURN, NoSave.SESSION, NoSave.RESUME)


# An import asks about a message again when it looks for what is saved again.
@cache_by_text(MOST_CACHED)
def find_no_save(message: str) -> NoSave | None:
    """Return the no-save command in a person's own words in a message; pasted and quoted text contains none."""
    if is_private(message):
        return NoSave.SENTENCE
    purges = may_purge(message)
    if not (purges or _may_command(message) or may_refuse_record(message)):
        return None
    lines = list_own_lines(message)
    typed = [text for line in lines for text in split_typed_sentences(line)]
    # Long messages may be pasted in part: they delete nothing that was said before.
    if purges and len(typed) <= MOST_TO_DELETE and any(map(orders_purge, typed)):
        return NoSave.TURN
    # "Remember this: never save passwords" is a command, but not this one.
    sentences = [text for line in lines for text in split_sentences(drop_idioms(read_line(line)[1]))]
    if any(map(refuses_record, sentences)):
        return NoSave.SENTENCE
    command = _guess(sentences)
    return NoSave.DOUBTFUL_TURN if command is NoSave.TURN else command


def _guess(sentences: Sequence[str]) -> NoSave | None:
    judged = [part for text in sentences for part in _list_parts(text) if _may_command(part) and not _is_no_order(part)]
    if judged and 1 < len(sentences) <= SHORT_MESSAGE:
        judged.append(" ".join(text for text in sentences if not _is_no_order(text)))
    if not judged:
        return None
    half = MOST_SENTENCES // 2
    judged = judged if len(judged) <= MOST_SENTENCES else judged[:half] + judged[-half:]
    command = _classifier().find([text[:LONGEST_SENTENCE] for text in judged])
    # "No notes." is about one answer: a session must be named, or a state of the memory.
    if command is NoSave.SESSION and all(_is_brief(text) for text in judged):
        return NoSave.SENTENCE
    return command


def _is_brief(text: str) -> bool:
    words = _list_words(text)
    return len(words) <= _BRIEF_WORDS and not any(_SESSION_CONCEPTS & set(_concepts(word)) for word in words)


def _list_parts(sentence: str) -> list[str]:
    """Return the first words of a sentence up to a colon, if there is one, and the sentence.

    In "not for your notes: …", the text after the colon may be about anything. "I always forget: …" orders nothing.
    """
    label = _LABEL.match(sentence)
    if label is not None and re.search(load_lexicon("nosave").alternatives("own_memory"), _fold(label[0])):
        return [sentence[label.end() :]]
    return [sentence] if label is None else [label[0], sentence]


def _is_no_order(text: str) -> bool:
    """Return whether a sentence only looks like an order: a question, or an order about a file or a result."""
    words = _list_words(_FILE_NAME.sub("file", text[:LONGEST_SENTENCE]))
    concepts = [_concepts(word) for word in words]
    present = {concept for meant in concepts for concept in meant}
    if words and words[0] in load_lexicon("nosave").words("questions") and text.rstrip().endswith("?"):
        return True
    if present & _ABOUT_TALK or not present & {"negation", "avoid"}:
        return False
    verb = next((number for number, meant in enumerate(concepts) if _KEEPING & set(meant)), None)
    if verb is None:
        return False
    # The object: up to the next mark, and not in a clause that contains what is to be kept.
    end = next((number for number, word in enumerate(words) if number > verb and word in _MARKS), len(words))
    objects = load_lexicon("nosave").words("objects")
    following = range(verb + 1, min(end, verb + 1 + _OBJECT_WORDS))
    return any("thing" in concepts[number] or words[number] in objects for number in following)


def load_no_save_classifier() -> None:
    """Fit the classifier before the first command needs it."""
    _classifier()


@dataclass(frozen=True, slots=True)
class NoSaveClassifier:
    """The columns of the known features, and their weights for each label."""

    columns: Mapping[Feature, int]
    weights: "Matrix"

    def find(self, texts: Sequence[str]) -> NoSave | None:
        """Return the most certain command in some texts."""
        import numpy as np

        word_lists = [_list_words(text) for text in texts]
        feature_sets = list(map(_list_features, word_lists))
        scores = _vectors(feature_sets, self.columns) @ self.weights
        excess_words = np.array([max(0, len(words) - SHORT_COMMAND) for words in word_lists])
        margins = 1 - scores[:, 0] - MIN_SCORE - PER_WORD * excess_words
        best = int(margins.argmax())
        command = NoSave(LABELS[1 + int(scores[best, 1:].argmax())])
        if margins[best] < PER_TEXT * log(len(texts)):
            return None
        return command if command is NoSave.RESUME or feature_sets[best] & _refusals() else None


@cache
def _refusals() -> frozenset[Feature]:
    return frozenset(("both" if "&" in name else "concept", name) for name in load_lexicon("nosave").words("refusals"))


@cache
def _classifier() -> NoSaveClassifier:
    from pipeline.index.sentence_classifier import Examples, list_examples

    source = Examples(
        "pipeline.sessions.orders", "nosave_examples", LABELS, vector_scale=0, mark_scale=0, penalty=_PENALTY
    )
    examples = list_examples(source)
    features = [_list_features(_list_words(text)) for text, _ in examples]
    return fit(features, [label for _, label in examples])


def fit(features: Sequence[frozenset[Feature]], labels: Sequence[str]) -> NoSaveClassifier:
    """Return the ridge regression of labels on features, in its dual form: there are fewer examples than features."""
    import numpy as np

    counts = Counter(feature for feature_set in features for feature in feature_set)
    common = sorted(feature for feature, count in counts.items() if count >= _MIN_EXAMPLES)
    columns = {feature: number for number, feature in enumerate(common)}
    x = _vectors(features, columns)
    expected = np.array([[label == column for column in LABELS] for label in labels], np.float32)
    similarities = x @ x.T
    similarities.flat[:: len(x) + 1] += _PENALTY
    return NoSaveClassifier(columns, x.T @ np.linalg.solve(similarities, expected))


def _vectors(features: Sequence[frozenset[Feature]], columns: Mapping[Feature, int]) -> "Matrix":
    import numpy as np

    vectors = np.zeros((len(features), len(columns) + 1), np.float32)
    for row, feature_set in zip(vectors, features, strict=True):
        for feature in feature_set:
            if (column := columns.get(feature)) is not None:
                row[column] = _WEIGHTS[feature[0]]
    # A command says the same in a short text and in a long one.
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    vectors *= _LENGTH / np.maximum(lengths, 1e-6)[:, None]
    # The constant.
    vectors[:, -1] = 1
    return vectors


def _list_words(text: str) -> list[str]:
    return _TOKEN.findall(_fold(text))


def _list_features(words: Sequence[str]) -> frozenset[Feature]:
    meant = [_concepts(word) for word in words]
    # "~" is any word without a meaning in the list.
    kinds = [_EDGE, *(concepts or (f"={word}", "~") for concepts, word in zip(meant, words, strict=True)), _EDGE]
    present = sorted({concept for concepts in meant for concept in concepts})
    following = [(left, meant[number + 1 : number + 1 + _WINDOW]) for number, left in enumerate(meant) if left]
    return frozenset(
        [
            *[("word", word) for word in words],
            *[("concept", concept) for concept in present],
            *[("next", f"{a}>{b}") for left, right in pairwise(kinds) for a in left for b in right],
            # Who refuses what: a sentence about a program has the words of a command, but another subject.
            *[
                ("three", f"{a}>{b}>{c}")
                for left, middle, right in zip(kinds, kinds[1:], kinds[2:], strict=False)
                for a in left
                for b in middle
                for c in right
            ],
            *[("later", f"{a}>{b}") for left, rights in following for right in rights for a in left for b in right],
            *[("both", f"{a}&{b}") for a, b in combinations(present, 2)],
            ("length", str(min(4, len(words) // 5))),
        ]
    )


def _fold(text: str) -> str:
    """Return a text without case and accents; a phrase that counts as one word is one."""
    folded = text.lower()
    if not folded.isascii():
        folded = "".join(char for char in unicodedata.normalize("NFD", folded) if not unicodedata.combining(char))
    return _phrases().sub(lambda match: re.sub(r"[\s-]+", "_", match[0]), _NEGATED.sub(" not", folded))


@cache
def _phrases() -> re.Pattern[str]:
    alternatives = "|".join(phrase.replace(" ", r"[\s-]+") for phrase in load_lexicon("nosave").words("phrases"))
    return re.compile(rf"\b(?:{alternatives})\b")


@cache
def _words() -> tuple[Mapping[str, Sequence[str]], Sequence[int]]:
    """Return the concepts of each entire word and of each start of words with a "*", and the lengths of the starts."""
    lexicon = load_lexicon("nosave").table("concepts")
    meanings: dict[str, list[str]] = {}
    for concept in lexicon.entries:
        for word in lexicon.words(concept):
            meanings.setdefault(word, []).append(concept)
    return meanings, sorted({len(word) - 1 for word in meanings if word.endswith("*")})


@lru_cache(maxsize=4096)
def _concepts(word: str) -> tuple[str, ...]:
    meanings, lengths = _words()
    spellings = [word, *(f"{word[:length]}*" for length in lengths if length <= len(word))]
    return tuple(sorted({concept for spelling in spellings for concept in meanings.get(spelling, ())}))


@cache
def _trigger() -> re.Pattern[str]:
    lexicon = load_lexicon("nosave")
    concepts = lexicon.table("concepts")
    words = {word for concept in lexicon.words("triggers") for word in concepts.words(concept)}
    spelt = sorted(re.escape(word) for word in words if not word.endswith("*"))
    starts = sorted(re.escape(word[:-1]) for word in words if word.endswith("*"))
    return re.compile(rf"\b(?:(?:{'|'.join(spelt)})\b|(?:{'|'.join(starts)}))")


def _may_command(text: str) -> bool:
    return _trigger().search(_fold(text)) is not None
