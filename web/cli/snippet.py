"""The part of a memory's text that is about a question, as a few lines of a terminal."""

import re
import textwrap

LINES = 2
CUT = "…"
_WORD = re.compile(r"\w+")
# Of a word that is asked for, its beginning tells most of its forms.
SHORTEST = 3
LONGEST_ENDING = 2


def fit_snippet(text: str, query: str, width: int, lines: int = LINES, lead: str = "") -> list[str]:
    """Return at most so many lines of a width that show where a text says most of a query.

    A `lead` with which the text begins is shown whatever part follows.
    """
    given = text.splitlines()
    if len(given) <= lines and all(len(line) <= width for line in given):
        return given
    flat = " ".join(text.split())
    whole = textwrap.wrap(flat, width)
    if len(whole) <= lines:
        return whole
    start = _find_start(flat, _beginnings(query), room=width * lines - width // 4)
    shown = f"{f'{lead} ' if start and lead else ''}{CUT if start else ''}{flat[start:]}"
    return textwrap.wrap(shown, width, max_lines=lines, placeholder=CUT)


def _beginnings(query: str) -> tuple[str, ...]:
    words = (word.casefold() for word in _WORD.findall(query) if len(word) >= SHORTEST)
    return tuple(dict.fromkeys(word[: max(SHORTEST, len(word) - LONGEST_ENDING)] for word in words))


def _find_start(flat: str, wanted: tuple[str, ...], room: int) -> int:
    """Return where a part of `room` characters begins that holds most of what is wanted, 0 where nothing does."""
    words = [(found.start(), found[0].casefold()) for found in _WORD.finditer(flat)]
    hits = [(at, beginning) for at, word in words for beginning in wanted if word.startswith(beginning)]
    best, most = 0, len({beginning for at, beginning in hits if at < room})
    for first, _ in hits:
        # A little of what stands before it tells what it is said of.
        start = next(at for at, _ in words if at >= first - room // 4)
        held = len({beginning for at, beginning in hits if start <= at < start + room})
        if held > most:
            best, most = start, held
    return best
