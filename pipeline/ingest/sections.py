"""The sections of a Markdown document, and what stands in front of it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# What opens and ends a code block, in which nothing is a heading.
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
# Lines that no underline makes a heading of: lists, quotes, tables, indented code.
_NO_PARAGRAPH = re.compile(r" {4}|\t| {0,3}(?:[-*+>|]|\d+[.)])(?:\s|\||$)| {0,3}\|")
_FRONT = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(.*))?$")
_ELEMENT = re.compile(r"[ \t]*-[ \t]+(.*)$")
_TITLES, _DATES, _TAGS = (
    ("title",),
    ("date", "created", "created_at", "updated", "modified"),
    ("tags", "tag", "keywords"),
)


@dataclass(frozen=True, slots=True)
class Front:
    """What a document says of itself before it begins."""

    title: str = ""
    date: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of text under its headings, outermost first; `top` is the level of the first of them, 0 without one."""

    path: tuple[str, ...]
    top: int
    text: str


def front_of(text: str) -> tuple[Front, str]:
    """Return what stands in front of a document, in the part of YAML that notes are headed with, and the rest."""
    text = text.replace("\r\n", "\n")
    found = _FRONT.match(text)
    if found is None:
        return Front(), text
    fields = _fields(found[1])
    return (
        Front(
            title=_first(fields, _TITLES),
            date=_first(fields, _DATES),
            tags=tuple(tag for name in _TAGS for value in fields.get(name, ()) for tag in _listed(value)),
        ),
        text[found.end() :],
    )


def sections_of(text: str) -> Iterator[Section]:
    """Yield the sections that say something, in their order."""
    headings: list[tuple[int, str]] = []
    lines: list[str] = []
    for line, heading in _lines(text):
        if heading is None:
            lines.append(line)
            continue
        yield from _section(headings, lines)
        level, name = heading
        headings = [*((above, title) for above, title in headings if above < level), (level, name)]
        lines = []
    yield from _section(headings, lines)


def _section(headings: list[tuple[int, str]], lines: list[str]) -> Iterator[Section]:
    text = "\n".join(lines).strip("\n")
    if text.strip():
        path = tuple(name for _, name in headings if name)
        yield Section(path, headings[0][0] if headings else 0, text)


def _lines(text: str) -> Iterator[tuple[str, tuple[int, str] | None]]:
    """Yield every line, and for a heading its level and name; no line in a code block is one."""
    fence = ""
    # The only line of a paragraph so far: underlined, it is a heading.
    alone: str | None = None
    fresh = True
    for line in text.splitlines():
        underline = None if alone is None else _UNDERLINE.match(line)
        if underline is not None and alone is not None:
            yield alone, (1 if underline[1][0] == "=" else 2, alone.strip())
            alone, fresh = None, True
            continue
        if alone is not None:
            yield alone, None
            alone = None
        fence, heading = _state(fence, line)
        plain = not fence and heading is None and bool(line.strip()) and not _NO_PARAGRAPH.match(line)
        if plain and fresh:
            alone = line
        else:
            yield line, heading
        fresh = not plain
    if alone is not None:
        yield alone, None


def _state(fence: str, line: str) -> tuple[str, tuple[int, str] | None]:
    """Return the fence of the code block that the line stands in or opens, else the heading that it is."""
    mark = _FENCE.match(line)
    if fence:
        ends = mark is not None and mark[1].startswith(fence) and not mark[2].strip()
        return ("" if ends else fence), None
    if mark is not None and not (mark[1][0] == "`" and "`" in mark[2]):
        return mark[1], None
    heading = _HEADING.match(line)
    return "", None if heading is None else (len(heading[1]), _name(line[heading.end() :]))


def _name(rest: str) -> str:
    """Return a heading's name without the signs that may close it."""
    name = rest.strip()
    bare = name.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else name


def _fields(front: str) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    name = ""
    for line in front.splitlines():
        if field := _FIELD.match(line):
            name = field[1].lower()
            fields[name] = [_unquoted(field[2])] if field[2] else []
        elif name and (element := _ELEMENT.match(line)):
            fields[name].append(_unquoted(element[1]))
    return fields


def _first(fields: dict[str, list[str]], names: tuple[str, ...]) -> str:
    return next((value for name in names for value in fields.get(name, ()) if value), "")


def _listed(value: str) -> list[str]:
    """Return the elements of `[a, b]` or `a, b`."""
    inner = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    return [_unquoted(one.strip()).lstrip("#") for one in inner.split(",")]


def _unquoted(value: str) -> str:
    text = value.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
