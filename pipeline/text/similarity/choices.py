"""Find what statements choose and state: choices among rivals, the keys of statements, and the values of slots.

Two texts from different stores seldom have the same form, so their sentences are compared: with the rules for denials,
and by the choice that each makes among tools and styles of which a project uses one ("npm" and "pnpm").

The canonical key of a statement says who chooses, among which alternatives, and about what: "I prefer tabs in Go" and
"I would rather have spaces in Go" have the key (user, indentation, {go}) and other values. The alternatives are those
above, or the value that an extractor found in the text. A text that says anything else about the choice has another
key: the later of two statements with one key replaces the earlier.

A stated value is recognized by its spelling alone: a quotation, an identifier, a number. Its slot are the words of the
sentence before it; general announcements ("from now on", "our convention") name no slot.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from typing import Final, NamedTuple

from pipeline.kernel.records import THE_USER, Memory
from pipeline.kernel.records.extraction import EXTRACTION
from pipeline.text.lexicon import load_lexicon
from pipeline.text.sentences import split_sentences
from pipeline.text.similarity import vocabulary as v
from pipeline.text.similarity.normalizer import strip_announcement
from pipeline.text.similarity.pair_classifier import ANOTHER_VALUE, DENIAL_COSINE, Judgement, Relation, classify_pair
from pipeline.text.text_cache import cache_by_text
from pipeline.text.tokens import search_tokens, speaker_of

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


# The canonical key of a statement without a keyed fact

# A longer text is about several things.
MAX_CHARS: Final = 200
PROJECT: Final = "project"
STATED: Final = "stated value"

_TERMS: Final = load_lexicon("rival_choices").table("preferences")
_BY_USER: Final = rf"(?P<user>{_TERMS.alternatives('persons')})"
_SUBJECT: Final = rf"(?:{_BY_USER}|{_TERMS.alternatives('groups')})(?: (?:{_TERMS.alternatives('adverbs')}))*"
_ACTION: Final = rf"(?: (?:{_TERMS.alternatives('action')}))*"
_REJECTS: Final = re.compile(rf"\b{_SUBJECT} ?(?:{_TERMS.alternatives('reject')})\b{_ACTION}", re.IGNORECASE)
_PREFERS: Final = re.compile(
    rf"\b(?:{_SUBJECT} ?(?:{_TERMS.alternatives('prefer')})|{_TERMS.alternatives('alone')})\b{_ACTION}",
    re.IGNORECASE,
)
_PERSONAL: Final = re.compile(rf"\b(?:{_BY_USER}|my|{_TERMS.alternatives('alone')})\b", re.IGNORECASE)
_OCCASION: Final = re.compile(rf"\b(?:{_TERMS.alternatives('occasion')})\b", re.IGNORECASE)
_REASON: Final = re.compile(rf"[,;]?\s+(?:{_TERMS.alternatives('reason')})\b.*", re.IGNORECASE)
_EXPERIENCE: Final = re.compile(r"\b(?:i|we)(?:'ve| have| had)? used\b", re.IGNORECASE)
_ONE_VALUED: Final = v.WORDS["singular"] | v.WORDS["one_valued"] | v.WORDS["settled"] | v.WORDS["stative"]
_UNSPECIFIC: Final = frozenset(
    search_tokens(
        " ".join((*CHOOSING, *_TERMS.words("scenery"), *_TERMS.words("adverbs"), *v.WORDS["foreign"], *v.PERSONS))
    )
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
    return _parse(memory.content, None if value is None else str(value)) if len(memory.content) <= MAX_CHARS else None


@lru_cache(maxsize=8192)
def _parse(text: str, value: str | None) -> KeyedStatement | None:
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


# Values that a text of any length states for a slot: "when naming methods, start the name with 'x_'"

# A longer text is a document, which states many values and replaces none.
LONGEST_WITH_VALUES = 2000
# Fewer words do not identify a slot.
LEAST_WORDS = 2
# The values of a text take 1.4 kilobytes, its stems 0.4; a text without values takes almost nothing.
MAX_CACHED_TEXTS = 8192

_SLOTS: Final = load_lexicon("slots")
_DIGITS: Final = r"\d[\d.,:]*\d|\d"
_VALUE: Final = re.compile(
    r"(?<!\w)(?:'([^'\n]{1,40}?)'|\"([^\"\n]{1,40}?)\"|`([^`\n]{1,40}?)`|“([^”\n]{1,40})”)(?!\w)"
    rf"|(?<![\w'])({_DIGITS}|\w*[a-z][A-Z]\w*|\w+_\w*|_\w+)(?!\w)"
)
_NUMBER: Final = re.compile(rf"(?<![\w'])({_DIGITS})(?!\w)")
# Every value contains one of these signs, and every value but a number one of the second.
_HINT: Final = re.compile(r"[\d_'\"`“]|[a-z][A-Z]")
_OTHER_HINT: Final = re.compile(r"[_'\"`“]|[a-z][A-Z]")
# "Start naming them": the naming is meant.
_ASPECT: Final = re.compile(r"\b(?:start|begin|keep|stop)\s+(?=\w+ing\b)", re.IGNORECASE)


_GENERAL: Final = frozenset(search_tokens(" ".join(_SLOTS.words("general"))))
_SAME: Final = {
    stem: search_tokens(group.split()[0])[0] for group in _SLOTS.words("same_slot") for stem in search_tokens(group)
}
_REPLACED: Final = _GENERAL.union(_SAME)
_VERBS: Final = frozenset(_SAME.values())


class StatedValue(NamedTuple):
    """A value, the stems that name its slot, and the number of its sentence."""

    value: str
    slot: frozenset[str]
    sentence: int


@cache_by_text(MAX_CACHED_TEXTS)
def find_stated_values(text: str) -> tuple[StatedValue, ...]:
    """Return the values that a text states."""
    if len(text) > LONGEST_WITH_VALUES or not _HINT.search(text):
        return ()
    sentences = _split_stated(text)
    matches = [list(_find_values(sentence)) for sentence in sentences]
    if not any(matches) or not _VALUE.search(text):
        return ()
    stated: list[StatedValue] = []
    before = ""
    for number, (sentence, values) in enumerate(zip(sentences, matches, strict=True)):
        slots = [StatedValue(value, slot, number) for value, slot in _read_slots(sentence, values, before)]
        stated += slots
        before = "" if slots else sentence
    return tuple(stated)


@cache_by_text(MAX_CACHED_TEXTS)
def list_sentence_stems(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the different stems of each sentence of a text that states values."""
    # As sets, they take twice the memory.
    return tuple(tuple(dict.fromkeys(slot_words(sentence))) for sentence in _split_stated(text))


def _split_stated(text: str) -> list[str]:
    return split_sentences(text.partition(":")[2] if speaker_of(text) else text)


def _find_values(sentence: str) -> Iterable["re.Match[str]"]:
    if not _HINT.search(sentence):
        return ()
    # Most values are numbers, which are found several times faster.
    return (_VALUE if _OTHER_HINT.search(sentence) else _NUMBER).finditer(sentence)


def _read_slots(sentence: str, values: Iterable["re.Match[str]"], before: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each value and its slot; a sentence without a slot uses that of the sentence before."""
    end = 0
    first: list[str] | None = None
    for match in values:
        words = slot_words(sentence[end : match.start()])
        if first is None:
            words = first = words if len(set(words)) >= LEAST_WORDS else [*slot_words(before), *words]
        elif not _VERBS.intersection(words):
            # "Start methods with x_ and functions with f_": the verb applies to both.
            words += [word for word in first if word in _VERBS]
        value = next(group for group in match.groups() if group)
        if value[0].isdigit():
            # The unit of a number says what is counted.
            words = words + slot_words(" ".join(sentence[match.end() :].split(maxsplit=1)[:1]))
        if len(set(words)) >= LEAST_WORDS:
            yield value, frozenset(words)
        end = match.end()


def slot_words(text: str) -> list[str]:
    """Return the stems of a text that may name a slot."""
    # Most texts name no activity. Outside of ASCII, other letters equal its letters when case is ignored.
    if not text.isascii() or "ing" in text.lower():
        text = _ASPECT.sub("", text)
    stems = search_tokens(text)
    if _REPLACED.isdisjoint(stems):
        return stems
    return [stem for stem in (_SAME.get(stem, stem) for stem in stems) if stem not in _GENERAL]
