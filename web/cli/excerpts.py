"""Cut the part of a text that matches a query, to fit into a few lines of a terminal."""

import re
import textwrap

LINES = 2
CUT = "…"
_WORD = re.compile(r"\w+")
# A query word also matches other forms with the same stem.
SHORTEST_STEM = 3
LONGEST_ENDING = 2


def fit_excerpt(text: str, query: str, width: int, lines: int = LINES, lead: str = "") -> list[str]:
    """Return the part of a text with the most words of a query, wrapped to at most `lines` lines of `width`.

    If the excerpt does not start at the beginning of the text, the `lead` is put in front.
    """
    original = text.splitlines()
    if len(original) <= lines and all(len(line) <= width for line in original):
        return original
    flat = " ".join(text.split())
    wrapped = textwrap.wrap(flat, width)
    if len(wrapped) <= lines:
        return wrapped
    start = _find_start(flat, _find_stems(query), room=width * lines - width // 4)
    excerpt = f"{f'{lead} ' if start and lead else ''}{CUT if start else ''}{flat[start:]}"
    return textwrap.wrap(excerpt, width, max_lines=lines, placeholder=CUT)


def _find_stems(query: str) -> tuple[str, ...]:
    words = (word.casefold() for word in _WORD.findall(query) if len(word) >= SHORTEST_STEM)
    return tuple(dict.fromkeys(word[: max(SHORTEST_STEM, len(word) - LONGEST_ENDING)] for word in words))


def _find_start(flat: str, stems: tuple[str, ...], room: int) -> int:
    """Return where the part of `room` characters with the most stems starts; 0 if no stem occurs."""
    words = [(match.start(), match[0].casefold()) for match in _WORD.finditer(flat)]
    hits = [(at, stem) for at, word in words for stem in stems if word.startswith(stem)]
    best, most = 0, len({stem for at, stem in hits if at < room})
    for hit, _ in hits:
        # Some text before the match gives it context.
        start = next(at for at, _ in words if at >= hit - room // 4)
        count = len({stem for at, stem in hits if start <= at < start + room})
        if count > most:
            best, most = start, count
    return best
