"""Activities of software work that a text names in any of its languages, and whether a message only asks."""

import re
from collections.abc import Mapping
from functools import cache, lru_cache

from pipeline.text.lexicon import Lexicon, load_lexicon

KEPT = 4096
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@lru_cache(KEPT)
def list_activities(text: str) -> frozenset[str]:
    """Return the activities that a text names, such as push, release or migrate."""
    return frozenset(activity for activity, words in _load_activities().items() if words.search(text))


def asks_information(message: str) -> bool:
    """Return whether a message opens with a question or asks for an explanation, so that nothing is done."""
    begin, anywhere = _load_questions()
    opening = _SENTENCE_END.split(message.strip())[0].lstrip("¿\"'“ ")
    return anywhere.search(message) is not None or begin.match(opening) is not None


@lru_cache(KEPT)
def list_occasions(text: str) -> tuple[str, ...]:
    """Return the passages that say when a rule applies: "a push" in "before every push", "tests fail" in "when tests
    fail".
    """
    return tuple(match[1].strip() for pattern in _load_occasions() for match in pattern.finditer(text) if match[1])


@cache
def _load_occasions() -> tuple[re.Pattern[str], ...]:
    lists = load_lexicon("activities").table("occasions")
    articles = rf"(?:(?:{lists.alternatives('articles')})\s+)*"
    # After a preposition, the first word is the occasion; a clause ends with a punctuation mark.
    ends = {"prepositions": r"([^\s,.;:]+)", "conjunctions": r"([^,.;:]+)"}
    return tuple(
        re.compile(rf"{_compile(lists, name).pattern}\s+{articles}{end}", re.IGNORECASE) for name, end in ends.items()
    )


@cache
def _load_activities() -> Mapping[str, re.Pattern[str]]:
    lists = load_lexicon("activities").table("activities")
    return {activity: _compile(lists, activity) for activity in lists.entries}


@cache
def _load_questions() -> tuple[re.Pattern[str], re.Pattern[str]]:
    lists = load_lexicon("activities").table("questions")
    return _compile(lists, "begin"), _compile(lists, "anywhere")


def _compile(lists: Lexicon, name: str) -> re.Pattern[str]:
    words = (re.escape(word).replace("_", r"\s+").replace(r"\*", r"\w*") for word in lists.words(name))
    return re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", re.IGNORECASE)
