"""Sentences and lines of a text in any language."""

import re

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
