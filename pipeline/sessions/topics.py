"""Describe what a session is about: the names of code in it, and the words with which its problem was described."""

from collections import Counter
from collections.abc import Iterable, Sequence

from pipeline.store.turns import Role, Turn
from pipeline.text.messages import is_function_word
from pipeline.text.own_words import list_own_lines
from pipeline.text.tokens import identifiers, search_tokens

MOST_NAMES = 12
MOST_WORDS = 48
# A shorter first message, such as "hi", does not describe a problem: the next one is read, too.
OPENING_WORDS = 12


def describe_topic(turns: Sequence[Turn], conclusions: Iterable[str]) -> tuple[str, ...]:
    """Return the names and words of a session's topic: names first, as tokens of a search."""
    opening = _opening(turns)
    concluded = " ".join(conclusions)
    counts = Counter(name for turn in turns for name in dict.fromkeys(identifiers(turn.content)))
    often = [name for name, count in counts.most_common(MOST_NAMES) if count > 1]
    names = dict.fromkeys([*identifiers(opening), *identifiers(concluded), *often])
    words = dict.fromkeys(word for word in search_tokens(opening) if not is_function_word(word))
    return (*list(names)[:MOST_NAMES], *(word for word in list(words)[:MOST_WORDS] if word not in names))


def _opening(turns: Sequence[Turn]) -> str:
    """Return the person's first message, with the next ones while they are short."""
    text = ""
    for turn in turns:
        if turn.role is Role.USER:
            text = f"{text} {' '.join(list_own_lines(turn.content))}"
            if len(search_tokens(text)) >= OPENING_WORDS:
                break
    return text
