"""A document of a project in sections, each told with its path and what stands above it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pipeline.ingest.fields import split_text
from pipeline.ingest.project.comments import one_line, shorten
from pipeline.ingest.project.files import SkippedFile

# What an agent is shown of a memory is short, so a section is a memory, and only tiny ones stand together.
SECTION_CHARS: Final = 1600
TINY_CHARS: Final = 500
LONGEST_TITLE: Final = 200
BETWEEN: Final = " › "

_FRONT_MATTER: Final = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_CODE_BLOCK: Final = re.compile(
    r"(^[ ]{0,3}(?:```|~~~).*?(?:^[ ]{0,3}(?:```|~~~)[ \t]*$|\Z))", re.MULTILINE | re.DOTALL
)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
# Badges and pictures say nothing in words.
_PICTURE: Final = re.compile(
    r"\[?!\[[^\]\n]*\]\([^)\n]*\)(?:\]\([^)\n]*\))?|<img\b[^>]*>|^\.\. (?:image|figure)::.*$", re.MULTILINE
)
_TAG: Final = re.compile(r"</?(?:p|div|a|br|h[1-6]|center|picture|source)(?:\s[^>]*)?/?>")
_RULER: Final = re.compile(r"(?<=\n\n)[ \t]*([#=*~_-])\1{9,}[ \t]*$", re.MULTILINE)
_FENCE: Final = re.compile(r"\s{0,3}(```+|~~~+)")
_HASHES: Final = re.compile(r"\s{0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$")
_UNDERLINE: Final = re.compile(r"([=\-~^\"'#*+`:.])\1{2,}\s*$")
_LETTER: Final = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class _Section:
    """What stands under a heading: the headings that lead to it, outermost first, and its text."""

    trail: tuple[str, ...]
    text: str


def render_prose(key: str, text: str) -> tuple[str, list[str]]:
    """Return a document's title and the parts that tell it; raise SkippedFile for one without words."""
    sections = list(_sections(_remove_pictures(text)))
    title = sections[0].trail[0] if sections and sections[0].trail else ""
    parts = [
        f"{_head(key, title, section.trail)}\n{piece}" for section in _pack(sections) for piece in _pieces(section.text)
    ]
    if not parts:
        raise SkippedFile("no words")
    return title, parts


def _head(key: str, title: str, trail: tuple[str, ...]) -> str:
    return BETWEEN.join([f"{key} · {title}" if title else key, *(one for one in trail if one != title)])


def _pieces(text: str) -> list[str]:
    return [piece for piece in split_text(text, SECTION_CHARS) if _LETTER.search(piece)]


def _remove_pictures(text: str) -> str:
    text = _FRONT_MATTER.sub("", text.replace("\r\n", "\n"))
    # What stands in a block of code is shown as it is.
    pieces = _CODE_BLOCK.split(text)
    pieces[::2] = (_TAG.sub("", _PICTURE.sub("", _RULER.sub("", _COMMENT.sub("", piece)))) for piece in pieces[::2])
    return "".join(pieces)


def _pack(sections: list[_Section]) -> Iterator[_Section]:
    """Yield sections, short ones together with those that follow them."""
    waiting: _Section | None = None
    for section in sections:
        heading = section.trail[-1] if section.trail else ""
        if waiting is not None and len(waiting.text) + len(section.text) + len(heading) < TINY_CHARS:
            together = f"{waiting.text}\n\n{heading}\n{section.text}".strip()
            waiting = _Section(_shared_trail(waiting.trail, section.trail), together)
            continue
        if waiting is not None:
            yield waiting
        waiting = section
    if waiting is not None:
        yield waiting


def _shared_trail(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    # The first heading leads; those that follow it stand in the text.
    same = [one for one, other in zip(first, second, strict=False) if one == other]
    return first if len(same) == len(first) else first[: len(same) + 1]


def _sections(text: str) -> Iterator[_Section]:
    trail: list[tuple[int, str]] = []
    body: list[str] = []
    for level, line in _lines(text):
        if level:
            if any(map(_LETTER.search, body)):
                yield _Section(tuple(title for _, title in trail), "\n".join(body).strip())
            body = []
            trail = [(above, title) for above, title in trail if above < level]
            trail.append((level, shorten(one_line(line), LONGEST_TITLE)))
        else:
            body.append(line)
    if any(map(_LETTER.search, body)):
        yield _Section(tuple(title for _, title in trail), "\n".join(body).strip())


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with the level of the heading that it is, 0 for none."""
    lines = text.split("\n")
    marks: list[str] = []
    fence = ""
    skip = False
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if skip:
            skip = False
            continue
        opening = _FENCE.match(line)
        if opening and (not fence or opening[1].startswith(fence)):
            fence = "" if fence else opening[1][:3]
        hashes = None if fence else _HASHES.match(line)
        underline = None if fence or not line.strip() else _UNDERLINE.match(following)
        if hashes:
            yield len(hashes[1]), hashes[2]
        elif underline and _LETTER.search(line) and len(underline[0].strip()) >= min(len(line.strip()), 3):
            if underline[1] not in marks:
                marks.append(underline[1])
            skip = True
            yield marks.index(underline[1]) + 1, line
        else:
            yield 0, line
