"""A file's bytes and text, or why it is left out."""

import os
import re
import stat
from typing import Final

from pipeline.ingest.project.unfit import Unfit
from pipeline.ingest.project.walk import SPECIAL, UNREADABLE

MAX_FILE_BYTES: Final = 1024 * 1024
MEAN_LINE_CHARS: Final = 500
HEAD_CHARS: Final = 3000

_COMMENTS: Final = re.compile(r"^[ \t]*(?://|#|/?\*|--|<!--|\"\"\").*", re.MULTILINE)
_GENERATED: Final = re.compile(
    r"(?:\bauto-?|automatically |code |\b(?:is|was|been) |^\W*)generated\b"
    r".{0,200}?\bdo(?:n't| not) (?:edit|modify|change)"
    r"|\bdo(?:n't| not) (?:edit|modify|change)\b.{0,80}?(?:\bauto-?|automatically |\b(?:is|was|been) )generated\b"
    r"|@generated\b",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)


def read_file(path: str) -> tuple[bytes, float]:
    """Return a regular file's bytes, at most 1 MiB, and when it was last written; raise Unfit for any other."""
    try:
        # What was a file a moment ago may be a link or a pipe by now.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Unfit(SPECIAL)
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise Unfit(UNREADABLE) from error
    if len(data) > MAX_FILE_BYTES:
        raise Unfit("larger than 1 MiB")
    return data, status.st_mtime


def text_of(data: bytes) -> str:
    """Return what the bytes say; raise Unfit for what is no text."""
    if b"\0" in data:
        raise Unfit("binary")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unfit("not valid UTF-8") from error
    if not text.strip():
        raise Unfit("empty")
    return text


def written_by_people(text: str) -> str:
    """Return the text of a source file; raise Unfit for one that a program wrote."""
    if len(text) > MEAN_LINE_CHARS * 10 and len(text) > MEAN_LINE_CHARS * line_count(text):
        raise Unfit("minified")
    if _GENERATED.search("\n".join(_COMMENTS.findall(text[:HEAD_CHARS]))):
        raise Unfit("generated")
    return text


def line_count(text: str) -> int:
    """Return how many lines a text has."""
    return text.count("\n") + (not text.endswith("\n"))
