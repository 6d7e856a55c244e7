"""Shared parts of the readers of sources.

The items that readers return; fields of another tool's data, of any type; long texts cut into pieces.
"""

import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pipeline.kernel.records import MAX_CONTENT_CHARS, MAX_METADATA_BYTES, MAX_SESSION_ID_CHARS, MAX_TAGS, Draft
from pipeline.kernel.times import utc_text
from pipeline.text.normalize import (
    MAX_TAG_CHARS,
    clean_tags,
    drop_embedded_data,
    normalize_json,
    normalize_text,
    shorten,
)
from pipeline.text.redaction import redact, redact_json

MAX_KEY_CHARS = 1024
MAX_ID_CHARS = 200
MAX_TITLE_CHARS = 300
LEFT_OUT = "left_out"

# Times outside these years are errors of a clock or a unit.
_FIRST_YEAR, _LAST_YEAR = 1990, 2099
# Larger numbers are milliseconds, even larger ones microseconds: as seconds they would be after the year 5000.
_MILLISECONDS_FROM, _MICROSECONDS_FROM = 1e11, 1e14
_NUMBER = re.compile(r"\d{9,16}(?:\.\d+)?")
# Where a text may be cut, the best position first: each match ends where the next piece starts.
_ENDS = (
    re.compile(r"\n[ \t]*\n\s*"),
    re.compile(r"\n"),
    re.compile(r"[.!?…][\"'»”’)\]]*\s|[。！？]"),
    re.compile(r"\s"),
)
# Default number of commits to read, the newest first.
COMMITS = 2000


def text_of(value: Any) -> str:
    """Return a text, empty for other values and blank texts."""
    return value if isinstance(value, str) and not value.isspace() else ""


def name_of(value: Any, limit: int = MAX_TITLE_CHARS) -> str:
    """Return a text as a name: one line, normalized, of at most `limit` characters."""
    line = " ".join(normalize_text(value[: 4 * limit]).split()) if isinstance(value, str) else ""
    return shorten(line, limit)


def id_of(value: Any) -> str:
    """Return a name for an item of a source, empty if there is none or it contains a secret."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if abs(value) < 10**MAX_ID_CHARS else ""
    if not isinstance(value, str) or len(value) > MAX_ID_CHARS or redact(value).text != value:
        return ""
    return " ".join(normalize_text(value).split())


def session_of(source: str, name: str) -> str | None:
    """Return the session id for a conversation of a source; a long name is replaced by its hash."""
    if not name:
        return None
    whole = f"{source}:{name}"
    return whole if len(whole) <= MAX_SESSION_ID_CHARS else f"{source}:{digest_of([name])}"


def time_of(value: Any) -> str | None:
    """Return a time, given as seconds since 1970 or as ISO 8601 (UTC without a zone), None for other values."""
    moment = _from_number(value) if isinstance(value, int | float) else _from_text(value)
    if moment is None or not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        return None
    return utc_text(moment)


def time_of_change(modified: float) -> str:
    """Return a file's modification time as UTC text: archives may unpack times in the future, or before 1970."""
    return utc_text(datetime.fromtimestamp(min(max(modified, 0.0), time.time()), UTC))


def tags_of(*values: Any) -> tuple[str, ...]:
    """Return the texts among the values, and in lists of them, as distinct tags."""
    flat = [item for value in values for item in (value if isinstance(value, list | tuple) else [value])]
    slugs = clean_tags(item for item in flat if isinstance(item, str)).values()
    return tuple(dict.fromkeys(slug for slug in slugs if slug))[:MAX_TAGS]


def metadata_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that can be stored, without empty values; drop its largest fields, and name them, if too
    long.
    """
    filled = {key: _finite(value) for key, value in fields.items() if value not in (None, "", [], {})}
    clean: dict[str, Any] = redact_json(normalize_json(filled))[0]
    left_out: list[str] = []
    while _size(clean) > MAX_METADATA_BYTES:
        largest = max((key for key in clean if key != LEFT_OUT), key=lambda key: _size({key: clean[key]}))
        del clean[largest]
        left_out.append(name_of(largest, MAX_TAG_CHARS))
        clean[LEFT_OUT] = left_out[:MAX_TAGS]
    return clean


def digest_of(parts: Iterable[str]) -> str:
    """Return the SHA-256 of texts in their order."""
    whole = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        whole.update(b"%d:" % len(encoded))
        whole.update(encoded)
    return whole.hexdigest()


def digest_of_json(version: str, value: Any) -> str:
    """Return the SHA-256 of a JSON value, the same for the same fields in any order."""
    return digest_of([version, json.dumps(value, sort_keys=True)])


def _from_number(value: float) -> datetime | None:
    if isinstance(value, bool):
        return None
    size = abs(value)
    unit = 1e6 if size >= _MICROSECONDS_FROM else 1e3 if size >= _MILLISECONDS_FROM else 1
    try:
        return datetime.fromtimestamp(value / unit, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _from_text(value: Any) -> datetime | None:
    if not isinstance(value, str) or len(value) > 64:
        return None
    if _NUMBER.fullmatch(value.strip()):
        return _from_number(float(value))
    try:
        moment = datetime.fromisoformat(value.strip())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (OverflowError, ValueError):
        return None


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def split_text(text: str, limit: int = MAX_CONTENT_CHARS) -> list[str]:
    """Return the text, normalized and without secrets and embedded files, in pieces of at most `limit` characters;
    otherwise only white space is lost.
    """
    waiting = [normalize_text(drop_embedded_data(text))]
    pieces: list[str] = []
    while waiting:
        # Redact before cutting: the pattern of a secret does not match half of it, and a marker may be longer than the
        # secret.
        whole = redact(waiting.pop()).text
        if len(whole) > limit:
            waiting += reversed(list(_cut(whole, limit)))
        elif whole:
            pieces.append(whole)
    return pieces


def split_under_heading(heading: str, text: str) -> list[str]:
    """Return a text in pieces that fit in a memory, each under the heading."""
    head = redact(normalize_text(heading)).text
    if not head:
        return split_text(text)
    room = MAX_CONTENT_CHARS - len(head) - 2
    return [whole for piece in split_text(text, room) for whole in split_text(f"{head}\n\n{piece}")]


def _cut(text: str, limit: int) -> Iterator[str]:
    start, end = 0, len(text)
    while start < end:
        stop = _stop(text, start, end, limit)
        piece = text[start:stop].strip()
        if piece:
            yield piece
        start = stop


def _stop(text: str, start: int, end: int, limit: int) -> int:
    """Return the end of the piece that starts at `start`: pieces have similar lengths, no short remainder is left."""
    left = end - start
    if left <= limit:
        return end
    aim = start + left // -(-left // limit)
    lowest, highest = start + (aim - start) // 2, start + limit
    for ending in _ENDS:
        places = [match.end() for match in ending.finditer(text, lowest, highest)]
        if places:
            return min(places, key=lambda end_at: abs(end_at - aim))
    return highest


@dataclass(frozen=True, slots=True)
class Item:
    """An item that may be read again: `key` is its name in the source, `digest` the SHA-256 of its content."""

    key: str
    digest: str
    drafts: tuple[Draft, ...] = ()


@dataclass(frozen=True, slots=True)
class Unchanged:
    """An item that is already stored unchanged."""

    key: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A skipped item, and the reason."""

    key: str
    reason: str


Reading = Item | Unchanged | Skipped
Readings = Iterator[Reading]
# The stored digest of each item of a source.
Known = Mapping[str, str]
# Called with the completed amount and the total, in the reader's unit.
Progress = Callable[[int, int], None]


def read_item(known: Known, key: str, digest: str, drafts: Iterable[Draft]) -> Reading:
    """Return the reading of an item: unchanged, its memories, or skipped; drafts are made only for new content."""
    if known.get(key) == digest:
        return Unchanged(key)
    made = tuple(drafts)
    return Item(key, digest, made) if made else Skipped(key, "no text")
