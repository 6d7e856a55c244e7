"""Sentences and lines of a text in any language."""

import re

_ENDS = re.compile(r"(?<=[.!?…])[\"'”»)]*\s+(?=[^\W_a-zà-ÿа-яёіїєґ]|[\"'«„“(\[`])|(?<=[。！？])(?=.)|\n+")
_ABBREVIATED = re.compile(r"(?:^|[\s(])(?:[^\W\d_]|\d{1,2}|[A-ZÀ-ÞА-ЯЁІЇЄҐ]\w{1,2}|vs|etc|bzw|ca|approx)\.$")


def split_sentences(text: str) -> list[str]:
    """Split a text into its sentences and lines."""
    found: list[str] = []
    for part in (piece.strip() for piece in _ENDS.split(text)):
        if found and _ABBREVIATED.search(found[-1]):
            found[-1] = f"{found[-1]} {part}"
        elif part:
            found.append(part)
    return found
