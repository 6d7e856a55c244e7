"""Sentences and lines of a text in any language."""

import re

_ENDS = re.compile(r"(?<=[.!?…])[\"'”»)]*\s+(?=[^\W_a-zà-ÿа-яёіїєґ]|[\"'«„“(\[`])|(?<=[。！？])(?=.)|\n+")
_ABBREVIATED = re.compile(r"(?:^|[\s(])(?:[^\W\d_]|\d{1,2}|[A-ZÀ-ÞА-ЯЁІЇЄҐ]\w{1,2}|vs|etc|bzw|ca|approx)\.$")
# The longest abbreviation with the character before it and its full stop.
_TAIL_CHARS = 8


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
