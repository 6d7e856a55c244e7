"""Find values that a text of any length states for a slot: "when naming methods, start the name with 'x_'".

A value is recognized by its spelling alone: a quotation, an identifier, a number. Its slot are the words of the
sentence before it; general announcements ("from now on", "our convention") name no slot.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from pipeline.text.lexicon import load_lexicon
from pipeline.text.sentences import split_sentences
from pipeline.text.tokens import search_tokens, speaker_of

# A longer text is a document, which states many values and replaces none.
MAX_CHARS = 2000
# Fewer words do not identify a slot.
LEAST_WORDS = 2

_LEXICON: Final = load_lexicon("slots")
_VALUE: Final = re.compile(
    r"(?<!\w)(?:'([^'\n]{1,40}?)'|\"([^\"\n]{1,40}?)\"|`([^`\n]{1,40}?)`|“([^”\n]{1,40})”)(?!\w)"
    r"|(?<![\w'])(\d[\d.,:]*\d|\d|\w*[a-z][A-Z]\w*|\w+_\w*|_\w+)(?!\w)"
)
# "Start naming them": the naming is meant.
_ASPECT: Final = re.compile(r"\b(?:start|begin|keep|stop)\s+(?=\w+ing\b)", re.IGNORECASE)


def _stems(name: str) -> frozenset[str]:
    return frozenset(search_tokens(" ".join(_LEXICON.words(name))))


_GENERAL: Final = _stems("general")
_SAME: Final = {
    stem: search_tokens(group.split()[0])[0] for group in _LEXICON.words("same_slot") for stem in search_tokens(group)
}
_VERBS: Final = frozenset(_SAME.values())


class StatedValue(NamedTuple):
    """A value, the stems that name its slot, and the stems that only occur in the text's other sentences."""

    value: str
    slot: frozenset[str]
    beside: frozenset[str]


@lru_cache(maxsize=4_000)
def find_stated_values(text: str) -> tuple[StatedValue, ...]:
    """Return the values that a text states."""
    if len(text) > MAX_CHARS or not _VALUE.search(text):
        return ()
    stated: list[StatedValue] = []
    before: list[str] = []
    sentences = split_sentences(text.partition(":")[2] if speaker_of(text) else text)
    everything = frozenset(stem for sentence in sentences for stem in slot_words(sentence))
    for sentence in sentences:
        words = slot_words(sentence)
        values = list(_read_sentence(sentence, before))
        stated += [StatedValue(value, slot, everything.difference(slot, words)) for value, slot in values]
        before = [] if values else words
    return tuple(stated)


def _read_sentence(sentence: str, before: list[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each value and its slot; a sentence without a slot uses that of the sentence before."""
    end = 0
    first: list[str] | None = None
    for match in _VALUE.finditer(sentence):
        words = slot_words(sentence[end : match.start()])
        if first is None:
            words = first = words if len(set(words)) >= LEAST_WORDS else [*before, *words]
        elif not _VERBS.intersection(words):
            # "Start methods with x_ and functions with f_": the verb applies to both.
            words += [word for word in first if word in _VERBS]
        value = next(group for group in match.groups() if group)
        if value[0].isdigit():
            # The unit of a number says what is counted.
            words = words + slot_words(" ".join(sentence[match.end() :].split()[:1]))
        if len(set(words)) >= LEAST_WORDS:
            yield value, frozenset(words)
        end = match.end()


def slot_words(text: str) -> list[str]:
    """Return the stems of a text that may name a slot."""
    stems = (_SAME.get(stem, stem) for stem in search_tokens(_ASPECT.sub("", text)))
    return [stem for stem in stems if stem not in _GENERAL]
