"""Differences between two texts, word by word."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import StrEnum

# Scripts without spaces between words are compared by character; in others, punctuation is compared separately.
_UNSPACED = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_SIGN = rf"(?![{_UNSPACED}])\w"
_WORD = re.compile(rf"(?:{_SIGN}(?:[^\s{_UNSPACED}]*{_SIGN})?|\S)\s*|\s+")
# Comparing takes quadratic time, so longer changed parts count as one replacement.
COMPARED_WORDS = 600
# Maximum length of a shortened text, of one change, and of the context next to a change.
SHOWN_CHARS = 1600
CHANGE_CHARS = 500
BESIDE_CHARS = 90


class Side(StrEnum):
    """Whether a part is in both texts or only in one text."""

    SAME = "same"
    OLDER = "older"
    NEWER = "newer"


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a text; `cut` marks a shortened part."""

    side: Side
    text: str
    cut: bool = False


def diff_texts(older: str, newer: str) -> list[TextPart]:
    """Return the newer text with added parts marked and removed parts in their old position."""
    parts = []
    for same, first, second in _align(older, newer):
        parts += [TextPart(Side.SAME, second)] if same else [TextPart(Side.OLDER, first), TextPart(Side.NEWER, second)]
    return _join(parts)


def side_by_side(older: str, newer: str) -> tuple[list[TextPart], list[TextPart]]:
    """Return both texts, with equal parts shortened and differing parts marked."""
    aligned = _align(older, newer)
    ours = [TextPart(Side.SAME if same else Side.OLDER, first) for same, first, _ in aligned]
    theirs = [TextPart(Side.SAME if same else Side.NEWER, second) for same, _, second in aligned]
    return shorten(_join(ours)), shorten(_join(theirs))


def shorten(parts: Sequence[TextPart]) -> list[TextPart]:
    """Return parts that fit on a page: the start of the text and the changes with context."""
    shown, room = [], SHOWN_CHARS
    for number, part in enumerate(parts):
        if room <= 0:
            shown.append(TextPart(Side.SAME, "", cut=True))
            break
        if part.side is Side.SAME:
            before = BESIDE_CHARS * (2 if number == 0 else 1)
            after = 0 if number == len(parts) - 1 else BESIDE_CHARS
            some = _elide(part, before, after)
        else:
            some = _elide(part, min(room, CHANGE_CHARS), 0)
        shown += some
        room -= sum(len(piece.text) for piece in some)
    return shown


def _align(older: str, newer: str) -> list[tuple[bool, str, str]]:
    """Return pairs of parts of both texts in order, and whether their words are equal."""
    first, second = _WORD.findall(older), _WORD.findall(newer)
    # Ignore whitespace, so that a word at the end of a line equals the same word elsewhere.
    ours, theirs = [word.strip() for word in first], [word.strip() for word in second]
    head = _common(zip(ours, theirs, strict=False))
    shorter = min(len(ours), len(theirs)) - head
    tail = min(shorter, _common(zip(reversed(ours), reversed(theirs), strict=False)))
    ends = len(first) - tail, len(second) - tail
    between = slice(head, ends[0]), slice(head, ends[1])
    aligned = [(True, "".join(first[:head]), "".join(second[:head]))]
    if max(ends) - head > COMPARED_WORDS:
        aligned.append((False, "".join(first[between[0]]), "".join(second[between[1]])))
    else:
        matcher = SequenceMatcher(None, ours[between[0]], theirs[between[1]])
        for tag, low, high, from_, to in matcher.get_opcodes():
            older_words, newer_words = first[head + low : head + high], second[head + from_ : head + to]
            aligned.append((tag == "equal", "".join(older_words), "".join(newer_words)))
    return [*aligned, (True, "".join(first[ends[0] :]), "".join(second[ends[1] :]))]


def _elide(part: TextPart, before: int, after: int) -> list[TextPart]:
    if len(part.text) <= before + after:
        return [part]
    end = part.text[len(part.text) - after :] if after else ""
    parts = [replace(part, text=part.text[:before], cut=True)]
    return [*parts, replace(part, text=end)] if end else parts


def _common(pairs: Iterable[tuple[str, str]]) -> int:
    count = 0
    for older, newer in pairs:
        if older != newer:
            break
        count += 1
    return count


def _join(parts: Iterable[TextPart]) -> list[TextPart]:
    joined: list[TextPart] = []
    for part in parts:
        if not part.text:
            continue
        if joined and joined[-1].side is part.side:
            joined[-1] = TextPart(part.side, joined[-1].text + part.text)
        else:
            joined.append(part)
    return joined
