"""Detect texts in other languages than English by letters and function words.

It prefers English when in doubt: names, commands and code have few words of any language.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from operator import itemgetter

from pipeline.text.lexicon import load_lexicon
from pipeline.text.text_cache import cache_by_text

# A longer text does not improve the result.
READ_CHARS = 600
MAX_CACHED_TEXTS, MAX_CACHED_QUERIES = 16_384, 1024
MIN_WORDS = 2
# The minimum share of function words: prose has twice as many, code almost none.
MIN_SHARE = 0.15
LEAST_LETTERS = 3
LEAST_LETTERS_SHARE = 0.3

_WORD = re.compile(r"[^\W\d_]+")
# Greek and everything after it, except extended Latin and symbols.
_OTHER_SCRIPT = re.compile(r"[\u0370-\u1dff\u1f00-\u1fff\u2c80-\ua71f\ua780-\ufaff\ufb13-\uffdc\U00010000-\U000bffff]")
_ENGLISH = "english"


@cache_by_text(MAX_CACHED_TEXTS)
def is_foreign(text: str) -> bool:
    """Return whether a text is surely in another language than English."""
    text = text[:READ_CHARS]
    written = _WORD.findall(text)
    if not text.isascii() and _is_in_other_script(written):
        return True
    telling, english = _count_telling(written)
    return telling >= max(MIN_WORDS, MIN_SHARE * len(written)) and telling > english


@cache_by_text(MAX_CACHED_QUERIES)
def may_be_foreign(text: str) -> bool:
    """Return whether a text is more likely in another language than in English, however slightly."""
    text = text[:READ_CHARS]
    written = _WORD.findall(text)
    telling, english = _count_telling(written)
    return telling > english or (not text.isascii() and _is_in_other_script(written))


def find_language(text: str) -> str | None:
    """Return the likeliest other language of a text in Latin letters than English, by its name in English."""
    written = _WORD.findall(text[:READ_CHARS])
    counts = Counter(language for word in written for language in _languages_of_words().get(word.lower(), ()))
    english = counts.pop(_ENGLISH, 0)
    language, count = max(counts.items(), key=itemgetter(1), default=(None, 0))
    return language if count > english else None


def is_function_word(word: str) -> bool:
    """Return whether a word in lower case is a function word of any language."""
    return word in _languages_of_words()


def _is_in_other_script(written: Sequence[str]) -> bool:
    letters = "".join(written)
    others = len(_OTHER_SCRIPT.findall(letters))
    return others >= max(LEAST_LETTERS, LEAST_LETTERS_SHARE * len(letters))


def _count_telling(written: Sequence[str]) -> tuple[int, int]:
    """Count the function words of the likeliest other language, and those of English."""
    known = _languages_of_words()
    counts = Counter(chain.from_iterable(known[word] for word in map(str.lower, written) if word in known))
    english = counts.pop(_ENGLISH, 0)
    # Capitalized words may be names.
    accented = sum(len(word) > 1 and word.islower() for word in written if not word.isascii())
    return max(counts.values(), default=0) + accented, english


@cache
def _languages_of_words() -> Mapping[str, tuple[str, ...]]:
    """Return the languages of each function word."""
    lists = load_lexicon("languages").table("function_words")
    known: dict[str, tuple[str, ...]] = {}
    for language in lists.entries:
        for word in lists.words(language):
            known[word] = (*known.get(word, ()), language)
    return known
