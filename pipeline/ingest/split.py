"""Long texts cut into pieces that a memory holds, at the ends of paragraphs, lines, sentences or words."""

import re
from collections.abc import Iterator

from pipeline.records import MAX_CONTENT_CHARS
from pipeline.text.redaction import redact
from pipeline.write.normalize import normalize_text

# Where a text may be cut, the best place first: each ends where the next piece begins.
_ENDS = (
    re.compile(r"\n[ \t]*\n\s*"),
    re.compile(r"\n"),
    re.compile(r"[.!?…][\"'»”’)\]]*\s|[。！？]"),
    re.compile(r"\s"),
)


def split_text(text: str, limit: int = MAX_CONTENT_CHARS) -> list[str]:
    """Return the text, normalized and without secrets, in pieces of 1 to `limit` characters; only space is lost."""
    waiting = [normalize_text(text)]
    pieces: list[str] = []
    while waiting:
        # Before it is cut, since half a secret is no longer known for one; and its marker may be longer than it was.
        whole = redact(waiting.pop()).text
        if len(whole) > limit:
            waiting += reversed(list(_cut(whole, limit)))
        elif whole:
            pieces.append(whole)
    return pieces


def headed_texts(heading: str, text: str) -> list[str]:
    """Return a text in pieces that a memory holds, each of them under the heading."""
    head = redact(normalize_text(heading)).text
    if not head:
        return split_text(text)
    room = MAX_CONTENT_CHARS - len(head) - 2
    return [whole for piece in split_text(text, room) for whole in split_text(f"{head}\n\n{piece}")]


def _cut(text: str, limit: int) -> Iterator[str]:
    start, end = 0, len(text)
    while start < end:
        stop = _stop(text, start, end, limit)
        piece = text[start:stop].strip()
        if piece:
            yield piece
        start = stop


def _stop(text: str, start: int, end: int, limit: int) -> int:
    """Return where the piece that begins at `start` ends: pieces come out alike in length, none with a mere rest."""
    left = end - start
    if left <= limit:
        return end
    aim = start + left // -(-left // limit)
    lowest, highest = start + (aim - start) // 2, start + limit
    for ending in _ENDS:
        places = [found.end() for found in ending.finditer(text, lowest, highest)]
        if places:
            return min(places, key=lambda place: abs(place - aim))
    return highest
