"""The part of a long memory that a message is about."""

from collections.abc import Set as AbstractSet

from pipeline.text.sentences import split_sentences
from pipeline.text.tokens import search_tokens

CUT = "…"


def find_excerpt(text: str, asked: AbstractSet[str], room: int) -> str:
    """Return a text that fits unchanged, or else the sentences around the one most similar to a message."""
    if len(text) <= room or not (sentences := split_sentences(text)):
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


def find_news(text: str, asked: AbstractSet[str], room: int) -> str:
    """Return a text that fits unchanged, or else the run of its sentences with the most words that a message lacks.

    For a short text that answers a message as a whole: the message already says what both have in common.
    """
    sentences = split_sentences(text)
    if len(text) <= room or not sentences:
        return text
    best, first, last = -1, 0, 0
    for start in range(len(sentences)):
        size, words = 2 * len(CUT), set[str]()
        for end in range(start, len(sentences)):
            left = room - size
            words |= set(search_tokens(sentences[end][: max(0, left)])) - asked
            size += len(sentences[end]) + (end > start)
            if len(words) > best:
                best, first, last = len(words), start, end
            if size > room:
                break
    shown = " ".join(sentences[first : last + 1])
    room -= 2 * len(CUT)
    is_cut = last + 1 < len(sentences) or len(shown) > room
    return f"{CUT if first else ''}{shown[:room].rstrip()}{CUT if is_cut else ''}"
