"""Activities of software work that a text names in any of its languages, and whether a message only asks."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from pipeline.text.lexicon import load_lexicon

KEPT = 4096
_WORD = re.compile(r"\w+")
_FIRST_WORD = re.compile(r"([^\W_]+)(\*?)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@lru_cache(KEPT)
def list_activities(text: str) -> frozenset[str]:
    """Return the activities that a text names, such as push, release or migrate."""
    return frozenset(_load_activities().find(text))


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
        re.compile(rf"{_compile(lists.words(name)).pattern}\s+{articles}{end}", re.IGNORECASE)
        for name, end in ends.items()
    )


@dataclass(frozen=True, slots=True)
class ActivityWords:
    """The words that name an activity, each with the activity, and with the phrase that it begins, or nothing.

    Looking words up is several times faster than searching for one expression per activity. `beginnings` lists the
    beginnings of words by their first two letters, `others` what begins with no word, such as `.env`.
    """

    words: Mapping[str, list[tuple[str, str]]]
    beginnings: Mapping[str, list[tuple[str, str, str]]]
    others: list[tuple[str, str]]

    def find(self, text: str) -> Iterator[str]:
        """Yield the activities that a text names; one may come more than once."""
        for activity, phrase in self._list_possible(text.casefold()):
            if not phrase or _compile((phrase,)).search(text):
                yield activity

    def _list_possible(self, folded: str) -> Iterator[tuple[str, str]]:
        yield from ((activity, symbol) for activity, symbol in self.others if symbol in folded)
        for word in frozenset(_WORD.findall(folded)):
            yield from self.words.get(word, ())
            for beginning, activity, phrase in self.beginnings.get(word[:2], ()):
                if word.startswith(beginning):
                    yield activity, phrase


@cache
def _load_activities() -> ActivityWords:
    lists = load_lexicon("activities").table("activities")
    words, beginnings, others = defaultdict(list), defaultdict(list), []
    for activity in lists.entries:
        for entry in lists.words(activity):
            if (first := _FIRST_WORD.match(entry)) is None:
                others.append((activity, entry))
                continue
            word, phrase = first[1].casefold(), "" if first[0] == entry else entry
            if first[2]:
                beginnings[word[:2]].append((word, activity, phrase))
            else:
                words[word].append((activity, phrase))
    return ActivityWords(dict(words), dict(beginnings), others)


@cache
def _load_questions() -> tuple[re.Pattern[str], re.Pattern[str]]:
    lists = load_lexicon("activities").table("questions")
    return _compile(lists.words("begin")), _compile(lists.words("anywhere"))


@cache
def _compile(entries: tuple[str, ...]) -> re.Pattern[str]:
    words = (re.escape(entry).replace("_", r"\s+").replace(r"\*", r"\w*") for entry in entries)
    return re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", re.IGNORECASE)
