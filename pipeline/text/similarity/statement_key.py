"""The canonical key of a statement without a keyed fact: who chooses, among which alternatives, and about what.

"I prefer tabs in Go" and "I would rather have spaces in Go" have the key (user, indentation, {go}) and other values.
The alternatives are those of `store_conflicts`, or the value that an extractor found in the text. A text that says
anything else about the choice has another key: the later of two statements with one key replaces the earlier.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from pipeline.records import THE_USER, Memory
from pipeline.records.extraction import EXTRACTION
from pipeline.text.lexicon import load_lexicon
from pipeline.text.sentences import split_sentences
from pipeline.text.similarity import vocabulary as v
from pipeline.text.similarity.announcements import strip_announcement
from pipeline.text.similarity.pair_classifier import ANOTHER_VALUE, Judgement, Relation
from pipeline.text.similarity.store_conflicts import CHOOSING, NAMES, Choice, choose_differently, read_choices
from pipeline.text.tokens import search_tokens

# A longer text is about several things.
MAX_CHARS: Final = 200
PROJECT: Final = "project"
STATED: Final = "stated value"

_WORDS: Final = load_lexicon("rival_choices").table("preferences")
_BY_USER: Final = rf"(?P<user>{_WORDS.alternatives('persons')})"
_SUBJECT: Final = rf"(?:{_BY_USER}|{_WORDS.alternatives('groups')})(?: (?:{_WORDS.alternatives('adverbs')}))*"
_ACTION: Final = rf"(?: (?:{_WORDS.alternatives('action')}))*"
_REJECTS: Final = re.compile(rf"\b{_SUBJECT} ?(?:{_WORDS.alternatives('reject')})\b{_ACTION}", re.IGNORECASE)
_PREFERS: Final = re.compile(
    rf"\b(?:{_SUBJECT} ?(?:{_WORDS.alternatives('prefer')})|{_WORDS.alternatives('alone')})\b{_ACTION}", re.IGNORECASE
)
_PERSONAL: Final = re.compile(rf"\b(?:{_BY_USER}|my|{_WORDS.alternatives('alone')})\b", re.IGNORECASE)
_OCCASION: Final = re.compile(rf"\b(?:{_WORDS.alternatives('occasion')})\b", re.IGNORECASE)
_REASON: Final = re.compile(rf"[,;]?\s+(?:{_WORDS.alternatives('reason')})\b.*", re.IGNORECASE)
_EXPERIENCE: Final = re.compile(r"\b(?:i|we)(?:'ve| have| had)? used\b", re.IGNORECASE)
_ONE_VALUED: Final = v.SINGULAR | v.ONE_VALUED | v.SETTLED | v.STATIVE
_UNSPECIFIC: Final = frozenset(
    search_tokens(" ".join((*CHOOSING, *_WORDS.words("scenery"), *_WORDS.words("adverbs"), *v.FOREIGN, *v.PERSONS)))
)
_NEGATION: Final = frozenset(search_tokens(" ".join(v.NEGATIONS)))


class KeyedStatement(NamedTuple):
    """Who chooses, among which alternatives, the stems of what the choice is about, and the choice."""

    holder: str
    slot: str
    about: frozenset[str]
    choice: Choice


def relate_by_key(first: Memory, second: Memory) -> Judgement | None:
    """Return that the later of two statements with one key replaces the earlier; None for other memories."""
    mine, theirs = read_statement(first), read_statement(second)
    if mine is None or theirs is None or mine[:3] != theirs[:3] or not choose_differently(mine.choice, theirs.choice):
        return None
    if mine.holder == THE_USER and first.author != second.author:
        return None
    return Judgement(Relation.SUPERSEDES, (ANOTHER_VALUE,))


def read_statement(memory: Memory) -> KeyedStatement | None:
    """Return the key and the value of a memory; None for a text that makes no single choice for certain."""
    extraction = memory.metadata.get(EXTRACTION)
    value = extraction.get("value") if isinstance(extraction, dict) else None
    return _read(memory.content, None if value is None else str(value)) if len(memory.content) <= MAX_CHARS else None


@lru_cache(maxsize=8192)
def _read(text: str, value: str | None) -> KeyedStatement | None:
    bare = _REASON.sub("", strip_announcement(text))
    if bare.endswith("?") or len(split_sentences(bare)) != 1 or _EXPERIENCE.search(bare):
        return None
    plain = _PREFERS.sub(" prefer ", _REJECTS.sub(" never use ", _OCCASION.sub(" in ", bare.replace("’", "'"))))
    choices = read_choices(plain)
    if len(choices) == 1:
        ((slot, choice),) = choices.items()
        rest = NAMES[slot].sub(" ", plain)
    elif choices or value is None or value.casefold() not in plain.casefold():
        return None
    else:
        slot, choice = STATED, Choice(frozenset({value.casefold()}), frozenset())
        rest = re.sub(re.escape(value), " ", plain, flags=re.IGNORECASE)
    stems = frozenset(search_tokens(rest))
    about = stems - _UNSPECIFIC - frozenset(search_tokens(slot.replace("_", " ")))
    has_one_value = slot != STATED or (about and not _ONE_VALUED.isdisjoint(rest.lower().split()))
    if stems & _NEGATION or not has_one_value:
        return None
    return KeyedStatement(THE_USER if _PERSONAL.search(bare) else PROJECT, slot, about, choice)
