"""What one text says otherwise than another, word by word."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import StrEnum

# Where no space stands between words, every sign is compared by itself; elsewhere those around a word are.
_UNSPACED = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_SIGN = rf"(?![{_UNSPACED}])\w"
_WORD = re.compile(rf"(?:{_SIGN}(?:[^\s{_UNSPACED}]*{_SIGN})?|\S)\s*|\s+")
# Comparing takes time that grows with the square of the words: beyond, what lies between is another text as a whole.
COMPARED_WORDS = 600
# How much is shown of two texts at most, of a change, and beside one.
SHOWN_CHARS = 1600
CHANGE_CHARS = 500
BESIDE_CHARS = 90


class Side(StrEnum):
    """Whether a part is in both texts or in one alone."""

    SAME = "same"
    OLDER = "older"
    NEWER = "newer"


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a text; `cut` marks one of which something was left out."""

    side: Side
    text: str
    cut: bool = False


def diff_texts(older: str, newer: str) -> list[TextPart]:
    """Return the newer text with what is new in it marked, and with what is gone where it stood."""
    found = []
    for same, first, second in _align(older, newer):
        found += [TextPart(Side.SAME, second)] if same else [TextPart(Side.OLDER, first), TextPart(Side.NEWER, second)]
    return _join(found)


def side_by_side(older: str, newer: str) -> tuple[list[TextPart], list[TextPart]]:
    """Return both texts, shortened where they agree, each with what the other does not say."""
    aligned = _align(older, newer)
    ours = [TextPart(Side.SAME if same else Side.OLDER, first) for same, first, _ in aligned]
    theirs = [TextPart(Side.SAME if same else Side.NEWER, second) for same, _, second in aligned]
    return shorten(_join(ours)), shorten(_join(theirs))


def shorten(parts: Sequence[TextPart]) -> list[TextPart]:
    """Return what a page has room for: changes, what stands beside them, and how the text begins."""
    shown, room = [], SHOWN_CHARS
    for number, one in enumerate(parts):
        if room <= 0:
            shown.append(TextPart(Side.SAME, "", cut=True))
            break
        if one.side is Side.SAME:
            before = BESIDE_CHARS * (2 if number == 0 else 1)
            after = 0 if number == len(parts) - 1 else BESIDE_CHARS
            some = _elide(one, before, after)
        else:
            some = _elide(one, min(room, CHANGE_CHARS), 0)
        shown += some
        room -= sum(len(part.text) for part in some)
    return shown


def _align(older: str, newer: str) -> list[tuple[bool, str, str]]:
    """Return parts of both texts, in order, and whether they are the same words."""
    first, second = _WORD.findall(older), _WORD.findall(newer)
    # A word at the end of a line is the same word.
    ours, theirs = [word.strip() for word in first], [word.strip() for word in second]
    head = _common(zip(ours, theirs, strict=False))
    rest = min(len(ours), len(theirs)) - head
    tail = min(rest, _common(zip(reversed(ours), reversed(theirs), strict=False)))
    ends = len(first) - tail, len(second) - tail
    between = slice(head, ends[0]), slice(head, ends[1])
    found = [(True, "".join(first[:head]), "".join(second[:head]))]
    if max(ends) - head > COMPARED_WORDS:
        found.append((False, "".join(first[between[0]]), "".join(second[between[1]])))
    else:
        matcher = SequenceMatcher(None, ours[between[0]], theirs[between[1]])
        for tag, low, high, from_, to in matcher.get_opcodes():
            one, other = first[head + low : head + high], second[head + from_ : head + to]
            found.append((tag == "equal", "".join(one), "".join(other)))
    return [*found, (True, "".join(first[ends[0] :]), "".join(second[ends[1] :]))]


def _elide(one: TextPart, before: int, after: int) -> list[TextPart]:
    if len(one.text) <= before + after:
        return [one]
    end = one.text[len(one.text) - after :] if after else ""
    parts = [replace(one, text=one.text[:before], cut=True)]
    return [*parts, replace(one, text=end)] if end else parts


def _common(pairs: Iterable[tuple[str, str]]) -> int:
    count = 0
    for one, other in pairs:
        if one != other:
            break
        count += 1
    return count


def _join(parts: Iterable[TextPart]) -> list[TextPart]:
    found: list[TextPart] = []
    for one in parts:
        if not one.text:
            continue
        if found and found[-1].side is one.side:
            found[-1] = TextPart(one.side, found[-1].text + one.text)
        else:
            found.append(one)
    return found
