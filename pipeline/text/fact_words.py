"""Compare the names of facts by their words: "staging port", "staging db port" and "port of the staging database".

A fact is named by the words of its subject and its attribute together, wherever the one ends and the other starts.
"""

from functools import lru_cache
from typing import Final

from pipeline.text.lexicon import load_lexicon
from pipeline.text.names import SEPARATOR, canonical_name

_LEXICON: Final = load_lexicon("fact_words")
_FILLERS: Final = frozenset(_LEXICON.words("fillers"))
COMPONENTS: Final = frozenset(_LEXICON.words("components"))
_SAME: Final = {word: group.split()[0] for group in _LEXICON.words("same") for word in group.split()}
_PHRASES: Final = {phrase: word for phrase, word in _SAME.items() if SEPARATOR in phrase}
_COMPOUND_ENDS: Final = _LEXICON.words("compound_ends")
# A shorter first part of a compound may be the start of another word.
_LEAST_HEAD_CHARS: Final = 5
MAX_CACHED: Final = 16_384


def fact_words(text: str) -> frozenset[str]:
    """Return the words of a name or of a sentence that may name a fact, one form for each meaning."""
    return frozenset(list_fact_words(text))


@lru_cache(maxsize=MAX_CACHED)
def list_fact_words(text: str) -> tuple[str, ...]:
    """Return the words of a name in order, one form for each meaning."""
    name = f"{SEPARATOR}{canonical_name(text)}{SEPARATOR}"
    for phrase, word in _PHRASES.items():
        name = name.replace(f"{SEPARATOR}{phrase}{SEPARATOR}", f"{SEPARATOR}{word}{SEPARATOR}")
    parts = (part for word in name.split(SEPARATOR) if word for part in _split_compound(word))
    return tuple(_SAME.get(part, part) for part in parts if part not in _FILLERS)


def is_same_fact(name: str, other: str) -> bool:
    """Return whether two names have the same words in order, apart from components that one of them leaves out."""
    short, long = sorted((list_fact_words(name), list_fact_words(other)), key=len)
    if not set(short) - COMPONENTS:
        return False
    remaining = list(short)
    for word in long:
        if remaining and word == remaining[0]:
            remaining.pop(0)
        elif word not in COMPONENTS:
            return False
    return not remaining


def is_named_in(name: frozenset[str], words: frozenset[str]) -> bool:
    """Return whether a sentence contains the words of a name; it may leave out components."""
    telling = name - COMPONENTS
    return bool(telling) and telling <= words


def _split_compound(word: str) -> tuple[str, ...]:
    for end in _COMPOUND_ENDS:
        head = word.removesuffix(end).removesuffix("-")
        if head != word and len(head) >= _LEAST_HEAD_CHARS and head in _SAME:
            return head, end
    return (word,)
