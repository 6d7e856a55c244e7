"""Find what a person typed in a prompt that a host made of a command's template."""

import re
from collections.abc import Iterator, Sequence

# Where a host puts arguments, the output of a program, or a file.
_PLACEHOLDER = re.compile(r"\$ARGUMENTS(?:\[\d+\])?|\$\{[@\d][^}\s]*\}|\$[@\d]|\{\{\w+\}\}|!`[^`\n]*`|[!@]\{[^}\n]*\}")
_FILLED_BY_HOST = ("!", "@")
# Shorter templates say too little to recognize them.
SHORTEST_TEMPLATE = 12
# A template's lines may be left out or filled with text of other lines.
LINES_AHEAD = 50
# A host may write a title before the template.
MOST_LINES_BEFORE = 3


def find_arguments(message: str, template: str) -> str | None:
    """Return the words of a message that a template does not contain; None if the message was not made of it."""
    expected, lines = _list_lines(template), _list_lines(message)
    if not expected or sum(len(_PLACEHOLDER.sub("", line).strip()) for line in expected) < SHORTEST_TEMPLATE:
        return None
    starts = range(min(len(lines), MOST_LINES_BEFORE + 1))
    start = next((number for number in starts if _match_line(lines[number], expected[0]) is not None), None)
    if start is None:
        return None
    arguments, position, matched, is_filled = [], 0, 0, False
    for line in lines[start:]:
        found = _find_line(line, expected, position)
        if found is not None:
            position, own = found
            matched += 1
            is_filled = any(mark.startswith(_FILLED_BY_HOST) for mark in _PLACEHOLDER.findall(expected[position - 1]))
            arguments += own
        elif not is_filled or position == len(expected):
            arguments.append(line)
    return "\n".join(arguments) if matched * 2 > len(expected) else None


def _list_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _find_line(line: str, expected: Sequence[str], position: int) -> tuple[int, list[str]] | None:
    """Return the position after the next line of a template that a line was made of, and its arguments."""
    for number in range(position, min(len(expected), position + LINES_AHEAD)):
        arguments = _match_line(line, expected[number])
        if arguments is not None:
            return number + 1, arguments
    return None


def _match_line(line: str, expected: str) -> list[str] | None:
    """Return the arguments in a line that was made of a template's line, None for another line."""
    if line == expected:
        return [] if not _PLACEHOLDER.search(line) else None
    marks = list(_PLACEHOLDER.finditer(expected))
    if not marks:
        return None
    return _fill(line, list(_list_texts(expected, marks)), [mark[0] for mark in marks])


def _list_texts(expected: str, marks: Sequence[re.Match[str]]) -> Iterator[str]:
    """Yield the texts before, between and after the placeholders."""
    ends = [0, *(mark.end() for mark in marks)]
    for end, start in zip(ends, [*(mark.start() for mark in marks), len(expected)], strict=True):
        yield expected[end:start]


def _fill(line: str, texts: list[str], marks: list[str]) -> list[str] | None:
    first, last = texts[0].rstrip(), texts[-1].lstrip()
    if not line.startswith(first) or not line.endswith(last) or len(line) < len(first) + len(last):
        return None
    spots, position, end = [], len(first), len(line) - len(last)
    for text in texts[1:-1]:
        found = line.find(text, position, end)
        if found < 0:
            return None
        spots.append((position, found))
        position = found + len(text)
    spots.append((position, end))
    filled = zip(spots, marks, strict=True)
    return [own for (a, b), mark in filled if not mark.startswith(_FILLED_BY_HOST) and (own := line[a:b].strip())]
