"""Find statements of two texts that contradict each other, for texts from stores that different tools keep.

Two texts from different stores seldom have the same form, so their sentences are compared: with the rules for denials,
and by the choice that each makes among tools and styles of which a project uses one ("npm" and "pnpm").
"""

import re
from functools import lru_cache
from itertools import product
from typing import Final, NamedTuple

from pipeline.text.lexicon import load_lexicon
from pipeline.text.sentences import split_sentences
from pipeline.text.similarity.pair_classifier import DENIAL_COSINE, Relation, classify_pair

MAX_SENTENCES: Final = 20
MAX_SENTENCE_CHARS: Final = 300
OTHER_CHOICE: Final = "another choice"

_LEXICON: Final = load_lexicon("rival_choices")
_WORDS: Final = _LEXICON.table("words")
CHOOSING: Final = frozenset(_WORDS.words("choosing"))
_LIMITING: Final = frozenset(_WORDS.words("limiting"))
_REJECTING: Final = "|".join(re.escape(word) for word in _WORDS.words("rejecting"))
# The alternatives of each group, each with its group's name.
NAMES: Final = {
    group: re.compile(
        rf"(?P<rejected>\b(?:{_REJECTING})\s+(?:(?:use|uses|using|to|the|any|run|installing|with)\s+){{0,2}})?[`'\"*]*"
        rf"(?<![\w/.-])(?P<name>{'|'.join(names)})(?![\w/-]|\.\w)",
        re.IGNORECASE,
    )
    for group, names in _LEXICON.entries["groups"].items()
}
_WORD: Final = re.compile(r"[\w']+")


class Choice(NamedTuple):
    """The alternatives that a sentence chooses and rejects."""

    chosen: frozenset[str]
    rejected: frozenset[str]


def find_contradiction(first: str, second: str) -> str | None:
    """Return how a sentence of one text contradicts a sentence of the other, None if none does."""
    for sentence, other in product(_list_sentences(first), _list_sentences(second)):
        if _sentences_differ(sentence, other):
            return OTHER_CHOICE
        judgement = classify_pair(sentence, other, DENIAL_COSINE)
        if judgement.relation in (Relation.CONTRADICTS, Relation.SUPERSEDES):
            return judgement.reasons[0]
    return None


@lru_cache(maxsize=1000)
def _list_sentences(text: str) -> tuple[str, ...]:
    sentences = (sentence.strip(" -*•") for sentence in split_sentences(text))
    return tuple(sentence for sentence in sentences if 0 < len(sentence) <= MAX_SENTENCE_CHARS)[:MAX_SENTENCES]


def _sentences_differ(first: str, second: str) -> bool:
    mine, theirs = read_choices(first), read_choices(second)
    return any(choose_differently(choice, theirs[group]) for group, choice in mine.items() if group in theirs)


def choose_differently(choice: Choice, other: Choice) -> bool:
    """Return whether two choices of one group exclude each other."""
    return (
        bool(choice.chosen and other.chosen and choice.chosen.isdisjoint(other.chosen))
        or not choice.chosen.isdisjoint(other.rejected)
        or not choice.rejected.isdisjoint(other.chosen)
    )


@lru_cache(maxsize=2000)
def read_choices(sentence: str) -> dict[str, Choice]:
    """Return by group what a sentence chooses and rejects; empty for a sentence that chooses nothing for certain."""
    words = frozenset(_WORD.findall(sentence.lower()))
    if words.isdisjoint(CHOOSING) or not words.isdisjoint(_LIMITING):
        return {}
    choices = {}
    for group, names in NAMES.items():
        matches = list(names.finditer(sentence))
        rejected = frozenset(_name_of(match) for match in matches if match["rejected"])
        chosen = frozenset(_name_of(match) for match in matches if not match["rejected"]) - rejected
        # A sentence about two alternatives compares them.
        if len(chosen) <= 1 and (chosen or rejected):
            choices[group] = Choice(chosen, rejected)
    return choices


def _name_of(match: re.Match[str]) -> str:
    return match["name"].lower().removesuffix("s")
