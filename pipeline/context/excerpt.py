"""The part of a long memory that a message is about."""

import re
from collections.abc import Set as AbstractSet

from pipeline.text.tokens import search_tokens

CUT = "…"
_SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s)|[。！？]|$)", re.DOTALL)


def find_excerpt(text: str, asked: AbstractSet[str], room: int) -> str:
    """Return a text as it is where it fits, or else the sentences around the one that shares most with a message."""
    spans = [found.span() for found in _SENTENCE.finditer(text)]
    if len(text) <= room or not spans:
        return text
    shared = [len(asked & set(search_tokens(text[start:end]))) for start, end in spans]
    first = last = shared.index(max(shared))
    # What follows a sentence explains it more often than what precedes it.
    while last + 1 < len(spans) and spans[last + 1][1] - spans[first][0] <= room - 2 * len(CUT):
        last += 1
    while first and spans[last][1] - spans[first - 1][0] <= room - 2 * len(CUT):
        first -= 1
    start, end = spans[first][0], min(spans[last][1], spans[first][0] + room - 2 * len(CUT))
    return f"{CUT if start else ''}{text[start:end].rstrip()}{CUT if end < len(text) else ''}"
