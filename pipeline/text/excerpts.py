"""The part of a long memory that a message is about."""

from collections.abc import Set as AbstractSet

from pipeline.text.sentences import split_sentences
from pipeline.text.tokens import search_tokens

CUT = "…"


def find_excerpt(text: str, asked: AbstractSet[str], room: int) -> str:
    """Return a text that fits unchanged, or else the sentences around the one most similar to a message."""
    sentences = split_sentences(text)
    if len(text) <= room or not sentences:
        return text
    shared = [len(asked & set(search_tokens(sentence))) for sentence in sentences]
    first = last = shared.index(max(shared))
    shown, room = sentences[first], room - 2 * len(CUT)
    # What follows a sentence explains it more often than what precedes it.
    while last + 1 < len(sentences) and len(shown) + 1 + len(sentences[last + 1]) <= room:
        last += 1
        shown = f"{shown} {sentences[last]}"
    while first and len(shown) + 1 + len(sentences[first - 1]) <= room:
        first -= 1
        shown = f"{sentences[first]} {shown}"
    return f"{CUT if first else ''}{shown[:room]}{CUT if last + 1 < len(sentences) or len(shown) > room else ''}"
