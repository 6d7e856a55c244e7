"""Read JSON that another program wrote, as far as it can be read: one bad value costs only itself.

Standard library only: the client of hooks imports this module while an agent waits.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

# An object within an object is read member by member as well; what is further in is read in one piece or not at all.
DEEPEST = 2
_SPACE = re.compile(r"[\s,]*")
# A string as far as it goes: the end of the text may come before its closing quotation mark.
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
    """The fields of a JSON object, the names of those that are missing in part, and whether its end was reached."""

    fields: dict[str, Any]
    broken: frozenset[str] = frozenset()
    is_whole: bool = True

    def has_read(self, name: str) -> bool:
        """Return whether nothing of a field was lost."""
        return name not in self.broken and (self.is_whole or name in self.fields)


def decode_json(body: bytes) -> str:
    """Return the text of a JSON document in UTF-8, 16 or 32, with U+FFFD in place of what is no character."""
    return mend_surrogates(body.decode(json.detect_encoding(body), errors="replace").removeprefix("\ufeff"))


def mend_surrogates(text: str) -> str:
    """Return JSON with U+FFFD in place of each half of a surrogate pair, which cannot be stored, sent or shown."""
    return _SURROGATE.sub(lambda found: found["kept"] or r"\ufffd", text) if r"\ud" in text.lower() else text


def read_object(body: bytes) -> ReadObject:
    """Return the fields of a JSON object that can be read; raise ValueError where there is no object at all.

    Of fields with the same name the last counts.
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
    """Return the object whose JSON a text is, the text itself where it is none."""
    try:
        value = json.loads(mend_surrogates(text), strict=False)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def _read_members(text: str, depth: int) -> ReadObject:
    """Return the members of an object one by one, up to the first place where none starts."""
    place = text.find("{") + 1
    if place == 0 or text[: place - 1].strip():
        raise ValueError("a JSON object is expected")
    fields: dict[str, Any] = {}
    broken: set[str] = set()
    while True:
        place = _skip_space(text, place)
        if text[place : place + 1] == "}":
            return ReadObject(fields, frozenset(broken))
        named = _STRING.match(text, place)
        colon = _skip_space(text, named.end()) if named is not None else place
        if named is None or text[colon : colon + 1] != ":":
            return ReadObject(fields, frozenset(broken), is_whole=False)
        name = _read_string(named)
        value, is_whole, place = _read_value(text, _skip_space(text, colon + 1), depth)
        if not is_whole:
            broken.add(name)
        if value is not None or is_whole:
            fields[name] = value


def _skip_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return place if found is None else found.end()


def _read_value(text: str, place: int, depth: int) -> tuple[Any, bool, int]:
    """Return the value that starts at a place, None where it cannot be read; whether it is whole; where it ends."""
    string = _STRING.match(text, place)
    if string is not None:
        return _read_string(string), string[1] == '"', string.end()
    end = _find_end(text, place)
    try:
        value = json.loads(text[place:end], strict=False)
    except (ValueError, RecursionError):
        return *_read_in_part(text[place:end], depth), end
    # A number at the end of a text may go on.
    return value, end < len(text) or isinstance(value, list | dict), end


def _read_in_part(text: str, depth: int) -> tuple[Any, bool]:
    """Return the members of an object that is not valid as a whole, None for any other value; whether it is whole."""
    if not text.startswith("{") or depth == 1:
        return None, False
    within = _read_members(text, depth - 1)
    return within.fields, within.is_whole and not within.broken


def _find_end(text: str, place: int) -> int:
    """Return where the value that starts at a place ends, the end of the text for one that has no end."""
    if text[place : place + 1] not in ("{", "["):
        scalar = _SCALAR.match(text, place)
        return place if scalar is None else scalar.end()
    depth = 0
    for token in _STRUCTURE.finditer(text, place):
        if token[0][0] in "[{":
            depth += len(token[0])
        elif token[0] in "]}":
            depth -= 1
            if depth == 0:
                return token.end()
    return len(text)


def _read_string(found: re.Match[str]) -> str:
    """Return what a string says, also where it was cut or contains a backslash that escapes nothing."""
    token = found[0] if found[1] == '"' else _CUT_ESCAPE.sub("", found[0]) + '"'
    try:
        return str(json.loads(token, strict=False))
    except ValueError:
        # Windows' paths come as they are from programs that write JSON by hand.
        return token[1:-1]
