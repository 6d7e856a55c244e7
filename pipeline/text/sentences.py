"""Sentences and lines of a text in any language, and what they do: decide, change, correct, report a failure.

The lists of statements are in `lexicon/statements.toml`, one table for each reader, in the languages of capture; those
of the activities that a text names are in `lexicon/activities.toml`.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from pipeline.text.lexicon import load_lexicon

QUESTION_MARKS = ("?", "？")
_ENDS = re.compile(r"(?<=[.!?…])[\"'”»)]*\s+(?=[^\W_a-zà-ÿа-яёіїєґ]|[\"'«„“(\[`])|(?<=[。！？])(?=.)|\n+")
_ABBREVIATED = re.compile(r"(?:^|[\s(])(?:[^\W\d_]|\d{1,2}|[A-ZÀ-ÞА-ЯЁІЇЄҐ]\w{1,2}|vs|etc|bzw|ca|approx)\.$")
# The longest abbreviation with the character before it and its full stop.
_TAIL_CHARS = 8
# A sentence that starts in lower case, as people type in a chat. An ellipsis is a pause within a sentence.
_TYPED_ENDS = re.compile(r"(?<=\w[.!?]|[)\"'”»`!?][.!?]|\s[!?])\s+(?=[a-zà-ÿа-яёіїєґ¿¡])")
_TYPED_ABBREVIATED = re.compile(
    r"(?:^|[\s(.])(?:[^\W_]|\d{1,2}|vs|etc|eg|ie|cf|bzw|ca|approx|max|min|incl|inkl|resp|usw|ggf|evtl|bspw|zb|nr|no|ej|env|aprox)\.$",
    re.IGNORECASE,
)


def split_sentences(text: str) -> list[str]:
    """Split a text into its sentences and lines."""
    sentences: list[list[str]] = []
    continues = False
    for part in map(str.strip, _ENDS.split(text)):
        if not part:
            continues = False
            continue
        if continues:
            sentences[-1].append(part)
        else:
            sentences.append([part])
        continues = _ABBREVIATED.search(part, max(0, len(part) - _TAIL_CHARS)) is not None
    return [" ".join(parts) for parts in sentences]


def split_typed_sentences(text: str) -> list[str]:
    """Split a chat message into sentences; a sentence may start in lower case."""
    sentences: list[str] = []
    for sentence in split_sentences(text):
        continues = False
        for part in _TYPED_ENDS.split(sentence):
            if continues:
                sentences[-1] = f"{sentences[-1]} {part}"
            else:
                sentences.append(part)
            continues = _TYPED_ABBREVIATED.search(part, max(0, len(part) - _TAIL_CHARS)) is not None
    return sentences


# What a statement does, by its words

_PLACEHOLDER = re.compile(r"\{([a-z]\w*)\}")
# A consent may name nothing: a longer message says more than that.
LONGEST_CONSENT = 40
# A path is searched from the start of a word only: a search from each of its letters would be quadratic.
_PATH_OR_CODE = re.compile(r"`[^`]*+`|(?<![^\s`])[^\s/_`]*+[/_]\S*")


@cache
def expression(table: str, name: str) -> "re.Pattern[str]":
    """Return the expression of a list, in the form in which its table searches for it."""
    lists = load_lexicon("statements").table(table)

    def fill(text: str) -> str:
        return _PLACEHOLDER.sub(lambda place: fill(lists.alternatives(name if place[1] == "words" else place[1])), text)

    return re.compile(fill(lists.entries.get("forms", {}).get(name, lists.entries["form"])), re.IGNORECASE)


def says(table: str, name: str, text: str) -> bool:
    """Return whether a text contains an expression of a list."""
    return expression(table, name).search(text) is not None


def asks(sentence: str) -> bool:
    """Return whether a sentence is a question."""
    return sentence.rstrip("\"'”»)* ").endswith(QUESTION_MARKS)


def count_rule_words(text: str) -> int:
    """Count the different words of rules, and numbers, in a text without names of code."""
    plain = _PATH_OR_CODE.sub(" ", text)
    return len({word.lower() for word in expression("decision", "rules").findall(plain)})


def consents(message: str) -> bool:
    """Return whether a message does nothing but accept."""
    return len(message) <= LONGEST_CONSENT and says("decision", "consents", message.strip())


def corrects(sentence: str) -> bool:
    """Return whether a sentence corrects, forbids, or repeats an earlier instruction."""
    text = _plain(sentence)
    if says("correction", "opening", text) or says("correction", "instead", text):
        return True
    return _may_say("reproach", text) and says("correction", "reproach", text)


def fails(text: str) -> bool:
    """Return whether a text reports a failure."""
    plain = _plain(text)
    return _may_say("failure", plain) and says("correction", "failure", plain)


def fixes(text: str) -> bool:
    """Return whether a text states the end or the cause of a failure."""
    plain = _plain(text)
    return says("correction", "fix", plain) and not says("correction", "negated_fix", plain)


def _may_say(name: str, text: str) -> bool:
    lowered = text.lower()
    return any(head in lowered for head in load_lexicon("statements").table("correction").words(f"{name}_heads"))


def _plain(text: str) -> str:
    return text.replace("\u2019", "'").lstrip(" -*>\"'\u201c\u201e«(")


# Activities of software work that a text names in any of its languages, and whether a message only asks

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
