"""Read JSON of other programs as far as possible: an invalid value does not affect the others.

Standard library only: the hook client imports this module while an agent waits.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

# Objects on this many levels are read member by member; deeper values are read completely or not at all.
DEEPEST = 2
_SPACE = re.compile(r"[\s,]*")
# A string, even if the text ends before its closing quotation mark.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+("|\\?\Z)', re.DOTALL)
_STRUCTURE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[{]+|[\]}]', re.DOTALL)
_SCALAR = re.compile(r"[^\s,\]}]*")
_CUT_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_SURROGATE = re.compile(
    r"(?P<kept>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u])|\\u[dD][89a-fA-F][0-9a-fA-F]{2}",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ReadObject:
    """The fields of a JSON object, the names of incomplete fields, and whether the object is complete."""

    fields: dict[str, Any]
    broken: frozenset[str] = frozenset()
    is_whole: bool = True

    def has_read(self, name: str) -> bool:
        """Return whether a field was read completely."""
        return name not in self.broken and (self.is_whole or name in self.fields)


def decode_json(body: bytes) -> str:
    """Return the text of a JSON document in UTF-8, 16 or 32, with U+FFFD in place of invalid bytes."""
    return mend_surrogates(body.decode(json.detect_encoding(body), errors="replace").removeprefix("\ufeff"))


def mend_surrogates(text: str) -> str:
    """Return JSON with U+FFFD in place of each lone surrogate, which cannot be encoded."""
    return _SURROGATE.sub(lambda match: match["kept"] or r"\ufffd", text) if r"\ud" in text.lower() else text


def read_object(body: bytes) -> ReadObject:
    """Return the readable fields of a JSON object; raise ValueError if there is no object.

    The last of several fields with the same name is used.
    """
    text = decode_json(body)
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return _read_members(text, DEEPEST)
    if isinstance(value, dict):
        return ReadObject(value)
    raise ValueError("a JSON object is expected")


def read_text_object(text: str) -> dict[str, Any] | str:
    """Return the object of a JSON text, or the text itself if it is not the JSON of an object."""
    try:
        value = json.loads(mend_surrogates(text), strict=False)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def _read_members(text: str, depth: int) -> ReadObject:
    """Yield the members of an object up to the first position where no member starts."""
    position = text.find("{") + 1
    if position == 0 or text[: position - 1].strip():
        raise ValueError("a JSON object is expected")
    fields: dict[str, Any] = {}
    broken: set[str] = set()
    while True:
        position = _skip_space(text, position)
        if text[position : position + 1] == "}":
            return ReadObject(fields, frozenset(broken))
        named = _STRING.match(text, position)
        colon = _skip_space(text, named.end()) if named is not None else position
        if named is None or text[colon : colon + 1] != ":":
            return ReadObject(fields, frozenset(broken), is_whole=False)
        name = _read_string(named)
        value, is_whole, position = _read_value(text, _skip_space(text, colon + 1), depth)
        if not is_whole:
            broken.add(name)
        if value is not None or is_whole:
            fields[name] = value


def _skip_space(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return position if space is None else space.end()


def _read_value(text: str, position: int, depth: int) -> tuple[Any, bool, int]:
    """Return the value at a position (None if unreadable), whether it is complete, and where it ends."""
    string = _STRING.match(text, position)
    if string is not None:
        return _read_string(string), string[1] == '"', string.end()
    end = _find_end(text, position)
    try:
        value = json.loads(text[position:end], strict=False)
    except (ValueError, RecursionError):
        return *_read_in_part(text[position:end], depth), end
    # A number at the end of a text may be cut.
    return value, end < len(text) or isinstance(value, list | dict), end


def _read_in_part(text: str, depth: int) -> tuple[Any, bool]:
    """Return the members of a partly invalid object (None for any other value), and whether it is complete."""
    if not text.startswith("{") or depth == 1:
        return None, False
    within = _read_members(text, depth - 1)
    return within.fields, within.is_whole and not within.broken


def _find_end(text: str, position: int) -> int:
    """Return the end of the value at a position; the end of the text for an unterminated value."""
    if text[position : position + 1] not in ("{", "["):
        scalar = _SCALAR.match(text, position)
        return position if scalar is None else scalar.end()
    depth = 0
    for token in _STRUCTURE.finditer(text, position):
        if token[0][0] in "[{":
            depth += len(token[0])
        elif token[0] in "]}":
            depth -= 1
            if depth == 0:
                return token.end()
    return len(text)


def _read_string(match: re.Match[str]) -> str:
    """Return the content of a string, even if it is cut or contains a backslash that escapes nothing."""
    token = match[0] if match[1] == '"' else _CUT_ESCAPE.sub("", match[0]) + '"'
    try:
        return str(json.loads(token, strict=False))
    except ValueError:
        # Some programs write Windows paths into JSON without escaping them.
        return token[1:-1]
