"""What comments and docstrings say first, without their markers, tags and licences."""

import re
from collections.abc import Iterable
from itertools import takewhile
from typing import Final

LONGEST_DOC: Final = 200
LONGEST_PURPOSE: Final = 300

_MARKERS: Final = re.compile(r"^[ \t]*(?:/{2,}!?|/\*+!?|\*+/|\*+(?![*\w])|#+!?|<!--)?[ \t]?|[ \t]*(?:\*+/|-->)[ \t]*$")
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
# Tags that tell of the whole; any other ends the description.
_DESCRIBING_TAG: Final = re.compile(
    r"\s*[@\\](?:file|fileoverview|overview|packageDocumentation|module|description|desc|brief)\b[ \t]*"
)
_TAG: Final = re.compile(r"\s*(?:[@\\][a-zA-Z]+\b|:(?:param|type|returns?|raises?|rtype)\b)")
# A line of nothing but an address describes nothing.
_ADDRESS: Final = re.compile(r"\s*<?https?://\S+\s*")
_LETTER: Final = re.compile(r"[^\W\d_]")
_SENTENCE: Final = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)(?<!cf\.)(?<!etc\.)\s+(?=[^a-z])")
_ROLE: Final = re.compile(r":[a-z][a-z:]*:`[~!]?([^`]+)`")
_LINK: Final = re.compile(r"\{@\w+\s+([^}]*)\}")
_HTML: Final = re.compile(r"</?[a-zA-Z][^<>]*>")


def one_line(text: str) -> str:
    """Return a text with single spaces only, and none inside round brackets that stood on lines of their own."""
    return " ".join(text.split()).replace("( ", "(").replace(" )", ")").replace(",)", ")")


def shorten(text: str, limit: int) -> str:
    """Return a text of at most so many characters; one that was cut ends with an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def strip_markers(comment: str) -> str:
    """Return what a comment of one or several lines says, without its markers."""
    return "\n".join(_MARKERS.sub("", line) for line in comment.splitlines())


def summary(text: str) -> str:
    """Return the first sentence of a description."""
    return shorten(next(iter(_sentences(text)), ""), LONGEST_DOC)


def purpose(text: str) -> str:
    """Return the sentences that a description begins with."""
    told = ""
    for sentence in _sentences(text):
        if told and len(told) + 1 + len(sentence) > LONGEST_PURPOSE:
            break
        told = f"{told} {sentence}".strip()
    return shorten(told, LONGEST_PURPOSE)


def find_purpose(comments: Iterable[str]) -> str:
    """Return what the first of a file's leading comments that is no licence says."""
    return next((told for comment in comments if (told := purpose(strip_markers(comment)))), "")


def _sentences(text: str) -> list[str]:
    return _SENTENCE.split(_first_paragraph(text)) if text else []


def _first_paragraph(text: str) -> str:
    """Return the first paragraph that describes, on one line."""
    lines: list[str] = []
    for line in _described(text.strip().splitlines()):
        if _LETTER.search(line) and not _ADDRESS.fullmatch(line):
            lines.append(line)
        elif lines and not _is_licence(lines):
            break
        else:
            lines = []
    return "" if _is_licence(lines) else _plain(" ".join(lines))


def _described(lines: list[str]) -> Iterable[str]:
    spoken = (_DESCRIBING_TAG.sub("", line) for line in lines if not _DIRECTIVE.match(line))
    return takewhile(lambda line: not _TAG.match(line), spoken)


def _is_licence(lines: list[str]) -> bool:
    return any(_LICENCE.search(line) for line in lines)


def _plain(text: str) -> str:
    text = _LINK.sub(lambda found: found[1].replace("#", ".").lstrip("."), _ROLE.sub(r"\1", text))
    return one_line(_HTML.sub("", text).replace("``", "`"))
