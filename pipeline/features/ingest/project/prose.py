"""Read a project's prose: documents in sections, and the first sentences of comments and docstrings.

A section is shown with its path and its headings, a comment without its markers, tags and licences.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import takewhile
from typing import Final

from pipeline.features.ingest.fields import split_text
from pipeline.features.ingest.markdown import DocumentSection, split_sections
from pipeline.features.ingest.project.files import SkippedFile
from pipeline.text.normalize import drop_embedded_data, shorten

# Agents see only a short part of a memory, so each section is a memory, and only tiny ones are joined.
SECTION_CHARS: Final = 1600
TINY_CHARS: Final = 500
LONGEST_TITLE: Final = 200
BETWEEN: Final = " › "

_FRONT_MATTER: Final = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_CODE_BLOCK: Final = re.compile(
    r"(^[ ]{0,3}(?:```|~~~).*?(?:^[ ]{0,3}(?:```|~~~)[ \t]*$|\Z))", re.MULTILINE | re.DOTALL
)
_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
# Badges and pictures contain no words.
_PICTURE: Final = re.compile(
    r"\[?!\[[^\[\]\n]*+\]\((?:[^)\n!]|!(?!\[))*+\)(?:\]\([^()\n]*+\))?|<img\b[^<>]*+>|^\.\. (?:image|figure)::.*$",
    re.MULTILINE,
)
_TAG: Final = re.compile(r"</?(?:p|div|a|br|h[1-6]|center|picture|source)(?:\s[^<>]*+|/)?>")
_RULER: Final = re.compile(r"(?<=\n\n)[ \t]*([#=*~_-])\1{9,}[ \t]*$", re.MULTILINE)
_LETTER: Final = re.compile(r"[^\W_]")
LONGEST_DOC: Final = 200
LONGEST_PURPOSE: Final = 300

_MARKERS: Final = re.compile(
    r"^[ \t]*(?:/{2,}!?|/\*+!?|\*+/|\*+(?![*\w])|#+!?|<!--)?[ \t]?"
    r"|(?<![ \t])[ \t]*+(?:(?<!\*)\*++/|-->)[ \t]*+$"
)
_DIRECTIVE: Final = re.compile(
    r"\s*(?:-\*-|vim?:|eslint|tslint|jshint|global\s|globals\s|@ts-|@flow|@jsx|@jest|prettier-|istanbul|c8\s|v8\s|biome-"
    r"|go:|nolint|\+build|pylint|flake8|ruff:|noqa|mypy|pyright|type:\s*ignore|fmt:|isort|pragma|coding[:=]|region"
    r"|endregion|#region|#endregion|!/|<reference|<amd|todo\b|fixme\b|xxx\b|sourceMapping|webpack|@vite|@license"
    r"|use strict|checkstyle|suppress|NOSONAR|noinspection|rustfmt|clippy)",
    re.IGNORECASE,
)
_LICENCE: Final = re.compile(
    r"copyright|\(c\)\s*\d{4}|©|spdx-|all rights reserved|licen[sc]ed (?:under|to)|permission is hereby"
    r"|under the terms of|redistribution|warrant(?:y|ies)|you may (?:not|obtain)|obtain a copy"
    r"|required by applicable law|see (?:the )?licen[sc]e|the \S+ licen[sc]e|governed by|shall be included",
    re.IGNORECASE,
)
# Tags that describe the symbol; any other tag ends the description.
_DESCRIBING_TAG: Final = re.compile(
    r"\s*[@\\](?:file|fileoverview|overview|packageDocumentation|module|description|desc|brief)\b[ \t]*"
)
_DOC_TAG: Final = re.compile(r"\s*(?:[@\\][a-zA-Z]+\b|:(?:param|type|returns?|raises?|rtype)\b)")
# A line with only a URL describes nothing.
_ADDRESS: Final = re.compile(r"\s*<?https?://\S+\s*")
_WORD_LETTER: Final = re.compile(r"[^\W\d_]")
_SENTENCE: Final = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)(?<!cf\.)(?<!etc\.)\s+(?=[^a-z])")
_ROLE: Final = re.compile(r"(?<![a-z:]):[a-z][a-z:]*:`[~!]?([^`]+)`")
_LINK: Final = re.compile(r"\{@\w+\s+([^{}]*+)\}")
_HTML: Final = re.compile(r"</?[a-zA-Z][^<>]*>")


def render_prose(key: str, text: str) -> tuple[str, list[str]]:
    """Return a document's title and its parts; raise SkippedFile for one without words."""
    is_rst = not key.lower().endswith((".md", ".markdown", ".mdx"))
    sections = list(_list_sections(_remove_pictures(text), is_rst=is_rst))
    title = sections[0].path[0] if sections and sections[0].path else ""
    parts = [
        f"{_head(key, title, section.path)}\n{piece}"
        for section in _pack(sections)
        for piece in split_text(section.text, SECTION_CHARS)
        if _LETTER.search(piece)
    ]
    if not parts:
        raise SkippedFile("no words")
    return title, parts


def _head(key: str, title: str, trail: tuple[str, ...]) -> str:
    return BETWEEN.join([f"{key} · {title}" if title else key, *(heading for heading in trail if heading != title)])


def _remove_pictures(text: str) -> str:
    text = drop_embedded_data(_FRONT_MATTER.sub("", text.replace("\r\n", "\n")))
    # Code blocks are shown unchanged.
    pieces = _CODE_BLOCK.split(text)
    pieces[::2] = (_TAG.sub("", _PICTURE.sub("", _RULER.sub("", _COMMENT.sub("", piece)))) for piece in pieces[::2])
    return "".join(pieces)


def _pack(sections: list[DocumentSection]) -> Iterator[DocumentSection]:
    """Yield sections, joining short ones with those that follow."""
    waiting: DocumentSection | None = None
    for section in sections:
        heading = section.path[-1] if section.path else ""
        if waiting is not None and len(waiting.text) + len(section.text) + len(heading) < TINY_CHARS:
            together = f"{waiting.text}\n\n{heading}\n{section.text}".strip()
            waiting = replace(waiting, path=_shared_trail(waiting.path, section.path), text=together)
            continue
        if waiting is not None:
            yield waiting
        waiting = section
    if waiting is not None:
        yield waiting


def _shared_trail(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    # The first heading becomes the head; the following ones are part of the text.
    same = [heading for heading, other in zip(first, second, strict=False) if heading == other]
    return first if len(same) == len(first) else first[: len(same) + 1]


def _list_sections(text: str, *, is_rst: bool) -> Iterator[DocumentSection]:
    """Yield the sections with words, under short titles."""
    for section in split_sections(text, is_rst=is_rst):
        if _LETTER.search(section.text):
            path = tuple(shorten(one_line(title), LONGEST_TITLE) for title in section.path)
            yield replace(section, path=path, text=section.text.strip())


def one_line(text: str) -> str:
    """Return a text with single spaces, and none inside round brackets that were on separate lines."""
    return " ".join(text.split()).replace("( ", "(").replace(" )", ")").replace(",)", ")")


def strip_markers(comment: str) -> str:
    """Return the text of a comment of one or several lines, without its markers."""
    return "\n".join(_MARKERS.sub("", line) for line in comment.splitlines())


def summary(text: str) -> str:
    """Return the first sentence of a description."""
    return shorten(next(iter(_sentences(text)), ""), LONGEST_DOC)


def purpose(text: str) -> str:
    """Return the leading sentences of a description."""
    text_so_far = ""
    for sentence in _sentences(text):
        if text_so_far and len(text_so_far) + 1 + len(sentence) > LONGEST_PURPOSE:
            break
        text_so_far = f"{text_so_far} {sentence}".strip()
    return shorten(text_so_far, LONGEST_PURPOSE)


def find_purpose(comments: Iterable[str]) -> str:
    """Return the text of the first leading comment of a file that is not a licence."""
    return next((description for comment in comments if (description := purpose(strip_markers(comment)))), "")


def _sentences(text: str) -> list[str]:
    return _SENTENCE.split(_first_paragraph(text)) if text else []


def _first_paragraph(text: str) -> str:
    """Return the first descriptive paragraph, on one line."""
    lines: list[str] = []
    for line in _strip_directives(text.strip().splitlines()):
        if _WORD_LETTER.search(line) and not _ADDRESS.fullmatch(line):
            lines.append(line)
        elif lines and not _is_licence(lines):
            break
        else:
            lines = []
    return "" if _is_licence(lines) else _plain(" ".join(lines))


def _strip_directives(lines: list[str]) -> Iterable[str]:
    spoken = (_DESCRIBING_TAG.sub("", line) for line in lines if not _DIRECTIVE.match(line))
    return takewhile(lambda line: not _DOC_TAG.match(line), spoken)


def _is_licence(lines: list[str]) -> bool:
    return any(_LICENCE.search(line) for line in lines)


def _plain(text: str) -> str:
    text = _LINK.sub(lambda match: match[1].replace("#", ".").lstrip("."), _ROLE.sub(r"\1", text))
    return one_line(_HTML.sub("", text).replace("``", "`"))
