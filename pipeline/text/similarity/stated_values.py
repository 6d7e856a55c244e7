"""Find values that a text of any length states for a slot: "when naming methods, start the name with 'x_'".

A value is recognized by its spelling alone: a quotation, an identifier, a number. Its slot are the words of the
sentence before it; general announcements ("from now on", "our convention") name no slot.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from pipeline.text.lexicon import load_lexicon
from pipeline.text.sentences import split_sentences
from pipeline.text.text_cache import cache_by_text
from pipeline.text.tokens import search_tokens, speaker_of

# A longer text is a document, which states many values and replaces none.
MAX_CHARS = 2000
# Fewer words do not identify a slot.
LEAST_WORDS = 2
# The values of a text take 1.4 kilobytes, its stems 0.4; a text without values takes almost nothing.
MAX_CACHED_TEXTS = 8192

_LEXICON: Final = load_lexicon("slots")
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


_GENERAL: Final = frozenset(search_tokens(" ".join(_LEXICON.words("general"))))
_SAME: Final = {
    stem: search_tokens(group.split()[0])[0] for group in _LEXICON.words("same_slot") for stem in search_tokens(group)
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
    if len(text) > MAX_CHARS or not _HINT.search(text):
        return ()
    sentences = _list_sentences(text)
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
    return tuple(tuple(dict.fromkeys(slot_words(sentence))) for sentence in _list_sentences(text))


def _list_sentences(text: str) -> list[str]:
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
