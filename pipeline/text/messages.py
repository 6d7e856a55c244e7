"""Short messages to an agent: those that continue the message before, and those that say too little to search."""

import re
from collections.abc import Sequence
from functools import cache

from pipeline.text import languages
from pipeline.text.lexicon import load_lexicon, word_set
from pipeline.text.tokens import STOP_WORDS

# A message with more words, or with more words that name something, says itself what it is about.
FOLLOW_UP_WORDS = 12
OWN_WORDS = 3
LITTLE_WORDS = 6
SMALL_TALK_WORDS = 6
SHORTEST_WORD = 3
# Only so many words of the messages before are kept.
KEY_WORDS = 40
LONGEST_SMALL_TALK = 60
MOST_NAMES = 12

# "what's the weather"
_CONTRACTED = re.compile(r"^\W*(?:\w+\W+)?\w+['’]s(?= \w)")
_OPTION = re.compile(r"(?<!\S)--?[^\W\d]")
_LATER_WORD = re.compile(r"(?<=[\w,;:)] )[^\W\d_]\w+(?:[-'’]\w+)*")
_WORD = re.compile(r"(?<![\w'’./:@-])[\w'’./:@-]*\w")


def is_follow_up(message: str) -> bool:
    """Return whether a short message asks something that only the message before makes clear."""
    written = _words(message)
    if not 0 < len(written) <= FOLLOW_UP_WORDS or not word_set("messages.follow_up", "closes").isdisjoint(written):
        return False
    # An option of a command, as in "and with -v?", is about something of the moment.
    if _OPTION.search(message) or len(list_own_words(message)) > OWN_WORDS:
        return False
    fillers = word_set("messages.follow_up", "fillers")
    meaningful = [word for word in written if word not in fillers]
    if not meaningful:
        return False
    asks = word_set("messages.follow_up", "asks")
    continues = len(meaningful) > 1 and meaningful[0] in word_set("messages.follow_up", "continues")
    continues |= len(meaningful) > 1 and f" {' '.join(written)}".endswith(_ends())
    if continues or _points_back(meaningful):
        return continues or "?" in message or _asks(meaningful, asks | word_set("messages.follow_up", "opens"))
    return not _is_complete(message, meaningful) and ("?" in message or _asks(meaningful, asks))


def _asks(words: Sequence[str], asks: frozenset[str]) -> bool:
    return any(word in asks or word.split("'")[0] in asks for word in words)


def _points_back(words: Sequence[str]) -> bool:
    """Return whether words refer to what was said before."""
    lexicon = load_lexicon("messages").table("follow_up")
    text = " ".join(words)
    if any(expletive in text for expletive in lexicon.words("expletives")):
        words = text.replace("there", "").replace(" it", " ").replace(" es", " ").split()
    articles, after = word_set("messages.follow_up", "articles"), word_set("messages.follow_up", "after_pronouns")
    return (
        text.startswith(lexicon.words("points_at_start"))
        or not word_set("messages.follow_up", "points").isdisjoint(word.split("'")[0] for word in words)
        or any(
            word in articles and (not rest or rest[0] in after)
            for word, *rest in (words[start:] for start in range(len(words)))
        )
    )


def _is_complete(message: str, words: Sequence[str]) -> bool:
    """Return whether a question names what it is about in a sentence with a verb, as in "who is the CEO?"."""
    first, named = words[0].split("'")[0], list_own_words(message)
    if first not in word_set("messages.follow_up", "asks") | word_set("messages.follow_up", "opens") or not named:
        return False
    verbs = word_set("messages.follow_up", "verbs") | word_set("messages.follow_up", "opens")
    if first in word_set("messages.follow_up", "who") and len(named) > 1:
        return True
    return _CONTRACTED.search(message) is not None or not verbs.isdisjoint(words)


def refers_to_person(message: str) -> bool:
    """Return whether a message refers to a person by a pronoun."""
    return not word_set("messages.follow_up", "pronouns").isdisjoint(_words(message))


def list_names(text: str) -> list[str]:
    """Return the capitalized words within the sentences of a text, in order: names, and nouns in German."""
    return list(dict.fromkeys(name for name in _LATER_WORD.findall(text) if name[0].isupper()))[:MOST_NAMES]


def says_little(message: str) -> bool:
    """Return whether a message orders something without naming an object, as in "continue" or "fix the tests"."""
    written = [word for word in _words(message) if word not in word_set("messages.follow_up", "fillers")]
    orders, objects = word_set("messages.little", "orders"), word_set("messages.little", "objects")
    if not 0 < len(written) <= LITTLE_WORDS or orders.isdisjoint(written):
        return False
    return all(word in orders or word in objects or is_function_word(word) for word in written)


def is_small_talk(message: str) -> bool:
    """Return whether a short message only thanks or praises, as in "thanks, that looks great"."""
    if "?" in message or len(message) > LONGEST_SMALL_TALK:
        return False
    written, words = _words(message), word_set("messages.small_talk", "words")
    if len(written) > SMALL_TALK_WORDS or words.isdisjoint(written):
        return False
    return sum(word not in words for word in list_own_words(message)) <= 1


def list_own_words(message: str) -> list[str]:
    """Return the words of a message that name something, in order."""
    cues = _cues()
    return [word for word in _words(message) if word not in cues and not is_function_word(word)]


def is_wish(message: str) -> bool:
    """Return whether a message asks or wants something."""
    return "?" in message or not word_set("messages.wishes", "words").isdisjoint(_words(message))


def key_words(message: str, before: str = "") -> str:
    """Return the words of a message that name something, and those of the messages before it, the newest first."""
    return " ".join(list(dict.fromkeys([*list_own_words(message), *before.split()]))[:KEY_WORDS])


def is_function_word(word: str) -> bool:
    """Return whether a word connects others and names nothing."""
    bare = word.split("'", maxsplit=1)[0]
    return (
        len(word) < SHORTEST_WORD
        or bare in STOP_WORDS
        or languages.is_function_word(word)
        or word in word_set("messages.function_words", "words")
    )


def _words(text: str) -> list[str]:
    return [word.replace("’", "'").casefold().removesuffix("'s") for word in _WORD.findall(text)]


@cache
def _cues() -> frozenset[str]:
    return frozenset().union(
        *(word_set("messages.follow_up", name) for name in ("asks", "continues", "fillers", "closes"))
    )


@cache
def _ends() -> tuple[str, ...]:
    return tuple(f" {end}" for end in load_lexicon("messages").table("follow_up").words("ends"))
