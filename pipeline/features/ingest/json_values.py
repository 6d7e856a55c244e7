"""Read the values of a JSON document one after another: the document may be larger than the available memory.

Quotes and brackets alone decide where a value starts and ends, so that a value that is too large, too deep or broken is
skipped alone. Each value is then parsed completely.
"""

import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from pipeline.kernel.errors import FieldError, InvalidField

CHUNK_BYTES = 64 * 1024
MAX_DEPTH = 64
MAX_NAME_BYTES = 4096
# Parsed values may take this many times their bytes of memory; a list or object takes more than two brackets.
_SPREAD = 6
_CONTAINER_COST, _VALUE_COST = 240, 40

_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(rb"[ \t\r\n]*+")
_IN_TEXT = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
# Up to a bracket, or to a text that does not end in the bytes read so far.
_PLAIN = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_SCALAR = re.compile(rb'[^ \t\r\n,:"\[\]{}]++')
_QUOTE, _COMMA, _COLON, _BACKSLASH = b'",:\\'
_OPENING = frozenset(b"[{")
_CUT = "ends before its JSON does"


@dataclass(frozen=True, slots=True)
class SkippedValue:
    """A skipped value, and the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class ExportEntry:
    """A value of a list (numbered from 1) or of the root object, in which `name` is its field."""

    name: str | None
    number: int | None
    value: Any


class Readable(Protocol):
    """A source of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return at most this many of the next bytes, none at the end."""


def entries(stream: Readable, limit: int, advance: Callable[[int], None]) -> Iterator[ExportEntry]:
    """Yield the values of a list, or an object's fields and the values of its lists.

    A value of more than `limit` bytes, or an unreadable one, is a SkippedValue. Raises InvalidField if the document is
    broken around its values. `advance` is called with the number of bytes after each read.
    """
    text = _Text(stream, advance)
    start = text.peek()
    text.at += 1
    if start == ord("["):
        yield from _read_list(None, text, limit)
    elif start == ord("{"):
        yield from _fields(text, limit)
    else:
        raise build_source_error("is not a JSON list or object")
    if text.peek() is not None:
        raise build_source_error("continues after the end of its JSON")


def value_of(raw: bytes, limit: int) -> Any:
    """Return the value of some bytes, SkippedValue if they cannot be parsed."""
    text = _Text(io.BytesIO(raw), lambda _: None)
    try:
        value = _parse(text.value(limit))
    except InvalidField:
        return SkippedValue("not valid JSON")
    return value if text.peek() is None else SkippedValue("not valid JSON")


def build_source_error(problem: str) -> InvalidField:
    """Return an error with a description of the source's problem."""
    return InvalidField(FieldError("path", problem))


def open_source(path: Path) -> IO[bytes]:
    """Open a file of the source; raise InvalidField if it cannot be read."""
    try:
        return path.open("rb")
    except OSError as error:
        raise build_source_error(f"cannot be read: {error.strerror}") from error


def _fields(text: "_Text", limit: int) -> Iterator[ExportEntry]:
    while (byte := text.peek()) != ord("}"):
        if byte == _COMMA:
            text.at += 1
            continue
        name = _parse(text.value(MAX_NAME_BYTES)) if byte == _QUOTE else None
        if not isinstance(name, str) or text.peek() != _COLON:
            raise build_source_error(_CUT if text.peek() is None else "is not valid JSON")
        text.at += 1
        if text.peek() == ord("["):
            text.at += 1
            yield from _read_list(name, text, limit)
        else:
            yield ExportEntry(name, None, _parse(text.value(limit)))
    text.at += 1


def _read_list(name: str | None, text: "_Text", limit: int) -> Iterator[ExportEntry]:
    number = 0
    while (byte := text.peek()) != ord("]"):
        if byte == _COMMA:
            text.at += 1
        else:
            number += 1
            yield ExportEntry(name, number, _parse(text.value(limit)))
    text.at += 1


def _parse(raw: bytes | SkippedValue) -> Any:
    if isinstance(raw, SkippedValue):
        return raw
    try:
        return json.loads(raw.decode())
    except UnicodeDecodeError:
        return SkippedValue("not valid UTF-8")
    except ValueError:
        return SkippedValue("not valid JSON")


class _Text:
    """A window on the document: `at` is the position of the next character."""

    def __init__(self, stream: Readable, advance: Callable[[int], None]) -> None:
        self._stream = stream
        self._advance = advance
        self._window = b""
        self.at = 0
        if self._more():
            self._window = self._window.removeprefix(_BOM)

    def peek(self) -> int | None:
        """Return the next byte that is no white space, None at the end."""
        while True:
            self.at = _end_of(_SPACE, self._window, self.at)
            if self.at < len(self._window):
                return self._window[self.at]
            if not self._more():
                return None

    def value(self, limit: int) -> bytes | SkippedValue:
        """Skip a value and return it; one that is too large or too deep is not returned."""
        content, first = _Kept(limit), self.peek()
        if first is None:
            raise build_source_error(_CUT)
        if first == _QUOTE or first in _OPENING:
            self._skip_nested(content)
        else:
            self._skip_scalar(content)
        return content.take_value()

    def _skip_scalar(self, content: "_Kept") -> None:
        while match := _SCALAR.match(self._window, self.at):
            self.at = match.end()
            content.add(match[0])
            if self.at < len(self._window) or not self._more():
                return
        if not content.size:
            # An unmatched bracket or colon.
            content.add(self._window[self.at : self.at + 1])
            self.at += 1

    def _skip_nested(self, content: "_Kept") -> None:
        """Advance to the end of a text, list or object; keep its bytes once for each window."""
        start, depth, is_complete = self.at, 0, False
        in_text = self._window[start] == _QUOTE
        self.at += in_text
        while not is_complete:
            self.at = _end_of(_IN_TEXT if in_text else _PLAIN, self._window, self.at)
            byte = self._window[self.at] if self.at < len(self._window) else _BACKSLASH
            if byte == _BACKSLASH:
                # The window ends, perhaps within an escape sequence.
                content.add(self._window[start : self.at])
                if not self._more():
                    raise build_source_error(_CUT)
                start = self.at
                continue
            self.at += 1
            if byte == _QUOTE:
                in_text = not in_text
            elif byte in _OPENING:
                depth += 1
                content.note_opening(depth)
            else:
                depth -= 1
            is_complete = depth <= 0 and not in_text
        content.add(self._window[start : self.at])

    def _more(self) -> bool:
        chunk = self._stream.read(CHUNK_BYTES)
        self._advance(len(chunk))
        self._window, self.at = self._window[self.at :] + chunk, 0
        return bool(chunk)


class _Kept:
    """The bytes of a value, as long as the limits allow to keep them."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._parts: list[bytes] = []
        self._containers = 0
        self._too_deep = False

    def add(self, part: bytes) -> None:
        """Keep a part, or drop everything after a limit was exceeded."""
        self.size += len(part)
        if self.size > self._limit:
            self._parts.clear()
        else:
            self._parts.append(part)

    def note_opening(self, depth: int) -> None:
        """Count the start of a list or object."""
        self._containers += 1
        self._too_deep = self._too_deep or depth > MAX_DEPTH

    def take_value(self) -> bytes | SkippedValue:
        """Return the kept bytes."""
        if self._too_deep:
            return SkippedValue(f"nested deeper than {MAX_DEPTH} levels")
        raw = b"".join(self._parts)
        cost = _CONTAINER_COST * self._containers + _VALUE_COST * raw.count(b",")
        if self.size > self._limit or cost > _SPREAD * self._limit:
            return SkippedValue(f"larger than {self._limit >> 20} MiB")
        return raw


def _end_of(pattern: re.Pattern[bytes], window: bytes, start: int) -> int:
    match = pattern.match(window, start)
    return start if match is None else match.end()
