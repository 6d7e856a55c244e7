"""Read the lines of an agent's log from a mark on, without trusting the log."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

# The bytes before a mark that are compared. Lines of an agent's log differ by their times and ids.
COMPARED_BYTES = 1024
# A longer line is skipped. A string of a long line is cut: texts of this length are outputs and images.
LONGEST_LINE = 64 << 20
LONG_LINE = 4 << 20
LONGEST_STRING = 64 << 10
# A value takes some 60 bytes of memory. Longer texts may contain so many of them.
MOST_VALUES = 4_000_000

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_STRING_START = re.compile(rb'(?:[^"\\]++|\\u[0-9A-Fa-f]{4}|\\[^u])*+')
_DECODER = json.JSONDecoder()

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mark:
    """The end of a reading: a byte offset, a digest of the bytes before it, and what the next reading must know."""

    offset: int
    digest: str
    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """A line with the offset after it. `text` is None for a line that is too long to be read."""

    text: bytes | None
    end: int


def format_mark(log: BinaryIO, offset: int, state: Mapping[str, Any]) -> str:
    """Return a mark as text; the position in the log is kept."""
    position = log.tell()
    mark = {"offset": offset, "digest": digest_before(log, offset), "state": state}
    log.seek(position)
    return json.dumps(mark, separators=(",", ":"))


def parse_mark(log: BinaryIO, text: str | None) -> Mark | None:
    """Parse a mark; None if there is none, or if it does not fit to the log."""
    try:
        fields = json.loads(text or "null")
        mark = Mark(fields["offset"], fields["digest"], fields["state"])
    except (ValueError, TypeError, KeyError):
        return None
    is_valid = isinstance(mark.offset, int) and mark.offset >= 0 and isinstance(mark.state, dict)
    return mark if is_valid and digest_before(log, mark.offset) == mark.digest else None


def digest_before(log: BinaryIO, offset: int) -> str:
    """Return a digest of the bytes before an offset."""
    begin = max(0, offset - COMPARED_BYTES)
    log.seek(begin)
    return hashlib.blake2b(log.read(offset - begin), digest_size=8).hexdigest()


def iterate_lines(log: BinaryIO) -> Iterator[Line]:
    """Yield the complete lines from the current position on, and an incomplete last line if it is a JSON object."""
    offset = log.tell()
    while line := log.readline(LONGEST_LINE):
        if line.endswith(b"\n"):
            offset += len(line)
            yield Line(line, offset)
        elif len(line) == LONGEST_LINE:
            end = _skip_line(log)
            if end is None:
                return
            offset = end
            yield Line(None, offset)
        elif line.rstrip().endswith(b"}") and parse_records(line) is not None:
            # Some programs write the line feed before the next record.
            yield Line(line, offset + len(line))


def _skip_line(log: BinaryIO) -> int | None:
    """Skip the rest of a line; return the offset after it, None if the line is incomplete."""
    while rest := log.readline(LONG_LINE):
        if rest.endswith(b"\n"):
            return log.tell()
    return None


def parse_records(line: bytes) -> list[Record] | None:
    """Return the JSON objects of a line, usually one; None if it contains anything else."""
    if len(line) > LONG_LINE:
        line = _cut_strings(line)
        if has_many_values(line):
            return None
    text = line.decode("utf-8", "replace").strip()
    records: list[Record] = []
    position = 0
    try:
        while position < len(text):
            record, position = _DECODER.raw_decode(text, position)
            if not isinstance(record, dict):
                return None
            records.append(record)
            while position < len(text) and text[position].isspace():
                position += 1
    except (ValueError, RecursionError):
        return None
    return records


def has_many_values(text: str | bytes) -> bool:
    """Return whether a JSON text may contain more values than are loaded; signs within strings count too."""
    if len(text) <= LONG_LINE:
        return False
    signs = sum(map(text.count, ",[{")) if isinstance(text, str) else sum(map(text.count, (b",", b"[", b"{")))
    return signs > MOST_VALUES


def _cut_strings(line: bytes) -> bytes:
    """Cut the long strings of a JSON line."""
    pieces, kept = [], 0
    for string in _STRING.finditer(line):
        if string.end() - string.start() > LONGEST_STRING:
            # An escape sequence is not cut in half.
            start = _STRING_START.match(line, string.start() + 1, string.start() + LONGEST_STRING)
            cut = start.end() if start else string.start() + 1
            pieces.append(line[kept:cut])
            kept = string.end() - 1
    pieces.append(line[kept:])
    return b"".join(pieces)
