"""Parse front matter: the fields before a note's text, in YAML, TOML or JSON."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any, Final

import yaml

from pipeline.features.ingest.fields import time_of
from pipeline.kernel.times import utc_text

# The time and memory of the standard parser grow with the square of a key's parts.
MAX_KEY_PARTS: Final = 20

_KEY_PART: Final = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY: Final = re.compile(rf"(?<![\w-]){_KEY_PART}(?:[ \t]*+\.[ \t]*+{_KEY_PART}){{{MAX_KEY_PARTS}}}")


class LongKey(ValueError):
    """A key with too many parts."""

    def __init__(self) -> None:
        super().__init__(f"a key of more than {MAX_KEY_PARTS} parts")


def parse_foreign_toml(text: str) -> dict[str, Any]:
    """Return the values of a TOML text; raise ValueError for other text and LongKey for hostile keys."""
    if _LONG_KEY.search(text):
        raise LongKey
    return tomllib.loads(text)


MAX_CHARS: Final = 64 * 1024
MAX_DEPTH: Final = 20

# Field names without case, spaces, hyphens and underscores; the first with a value is used.
_TITLES: Final = ("title", "name")
_SUMMARIES: Final = ("description", "summary", "abstract", "excerpt", "tldr")
_TAGS: Final = ("tags", "tag", "keywords", "keyword", "categories", "category", "aliases", "alias")
_DATES: Final = tuple(
    """
    date datetime day created createdat createdon createdtime datecreated creationdate published publishedat
    publishdate publisheddate pubdate datepublished timestamp time updated updatedat dateupdated modified modifiedat
    datemodified lastmod lastmodified lastmodifiedat
    """.split()  # noqa: SIM905 - readable as words
)

_BLOCK: Final = re.compile(r"(---|\+\+\+)[ \t]*\n(.*?)^(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
# A field whose value is not quoted and not a block.
_PLAIN_FIELD: Final = re.compile(r"""^([\w][\w -]*):[ \t]+([^\s"'|>#].*)$""", re.MULTILINE)
# `#two` in a line of tags is a tag; for YAML it is a comment.
_HASH_TAGS: Final = re.compile(r"""^(tags?|keywords):[ \t]+([^\s\["'][^\n]*)$""", re.MULTILINE | re.IGNORECASE)
_CALENDAR: Final = re.compile(
    r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})(?:[-/.](?P<day>\d{1,2}))?"
    r"(?:(?:T|,?\s+)(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,]\d+)?)?"
    r"\s*(?P<half>am|pm)?\s*(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)?)?",
    re.IGNORECASE,
)
_SPOKEN: Final = re.compile(
    r"(?:[a-z]{3,9}\.?,?\s+)?(?:(?P<month>[a-z]{3,9})\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?"
    r"|(?P<day_first>\d{1,2})(?:st|nd|rd|th)?\s+(?P<month_last>[a-z]{3,9})\.?),?\s+(?P<year>\d{4})"
    r"(?:(?:,|\s+at)?\s+(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d))?"
    r"\s*(?P<half>am|pm)?\s*(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)?)?",
    re.IGNORECASE,
)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NOTHING: Final = ("", "~", "null")
# Without types and tags: a date stays as written.
_Loader: Final = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The front matter of a note; `occurred_at` is a time or None, `problems` name unreadable fields."""

    title: str = ""
    summary: str = ""
    occurred_at: str | None = None
    tags: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def split_front_matter(text: str) -> tuple[FrontMatter, str]:
    """Return a note's front matter and its text; unreadable front matter stays in the text."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    located = _find_block(text)
    if located is None:
        return FrontMatter(), text
    parse, block, end = located
    try:
        values = parse(block)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())[:200]
        return FrontMatter(problems=(f"front matter cannot be read: {reason}",)), f"{block}\n{text[end:]}"
    if values is None:
        return FrontMatter(), text[end:]
    # A text between two horizontal rules is not front matter.
    return (_describe(values), text[end:]) if isinstance(values, dict) else (FrontMatter(), text)


def parse_moment(value: object) -> str | None:
    """Return the time of a date field (UTC without a zone), None if it has no time."""
    if isinstance(value, datetime):
        return time_of(value.isoformat())
    if isinstance(value, date):
        return utc_text(datetime.combine(value, time(), UTC))
    if not isinstance(value, str) or len(value) > 64:
        return time_of(value) if isinstance(value, int | float) else None
    text = value.strip().strip("[]<>\"'").strip()
    if moment := time_of(text):
        return moment
    written = _CALENDAR.fullmatch(text) or _SPOKEN.fullmatch(text)
    return None if written is None else _read_date(written.groupdict(""))


def _read_date(parts: Mapping[str, str]) -> str | None:
    month = parts["month"] or parts.get("month_last", "")
    if not month.isdigit() and month[:3].lower() not in _MONTHS:
        return None
    number = int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1
    hour = int(parts["hour"] or 0)
    if parts["half"]:
        hour = hour % 12 + (12 if parts["half"].lower() == "pm" else 0)
    zone = "+00:00" if parts["zone"].upper() in ("", "Z", "UTC", "GMT") else parts["zone"]
    day = int(parts["day"] or parts.get("day_first") or 1)
    clock = f"{hour:02}:{int(parts['minute'] or 0):02}:{int(parts['second'] or 0):02}"
    return time_of(f"{parts['year']}-{number:02}-{day:02}T{clock}{zone}")


def _find_block(text: str) -> tuple[Callable[[str], Any], str, int] | None:
    """Return the front matter's parser, its text, and its end; None for a note without front matter."""
    head = text[:MAX_CHARS]
    if match := _BLOCK.match(head):
        return (_parse_yaml if match[1] == "---" else parse_foreign_toml), match[2], match.end()
    if not re.match(r"\{\s*\"", head):
        return None
    try:
        _, end = json.JSONDecoder().raw_decode(head)
    except (ValueError, RecursionError):
        return None
    return (json.loads, head[:end], end) if text[end : end + 1] in ("", "\n") else None


def _parse_yaml(block: str) -> Any:
    block = _HASH_TAGS.sub(lambda tags: _quote(tags[1], tags[2]) if re.search(r"#\w", tags[2]) else tags[0], block)
    try:
        return _load_yaml(block)
    except yaml.YAMLError:
        # Programs write titles with a colon, an @ or a % without the quotes that YAML requires.
        return _load_yaml(_PLAIN_FIELD.sub(_quote_value, block).replace("\t", "  "))


def _quote_value(field: re.Match[str]) -> str:
    value = field[2].partition(" #")[0].strip()
    if (value[0], value[-1]) in (("[", "]"), ("{", "}")):
        return field[0]
    return _quote(field[1], value)


def _quote(name: str, value: str) -> str:
    doubled = value.replace("'", "''")
    return f"{name}: '{doubled}'"


def _load_yaml(block: str) -> Any:
    depth = 0
    for event in yaml.parse(block, _Loader):
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError("it repeats values by an alias")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise yaml.YAMLError("it is nested too deeply")
    return yaml.load(block, _Loader)  # noqa: S506 - this loader makes texts, lists and dictionaries only


def _describe(values: Mapping[Any, Any]) -> FrontMatter:
    fields: dict[str, Any] = {}
    for name, value in values.items():
        fields.setdefault(re.sub(r"[\s_-]", "", str(name)).casefold(), value)
    dates = [(name, text) for name in _DATES for text in _list_texts(fields.get(name))]
    moments = [parse_moment(text) for _, text in dates]
    occurred_at = next(filter(None, moments), None)
    unread = [f"{name}: {str(text)[:50]!r} is not a date" for name, text in dates[:1] if occurred_at is None]
    return FrontMatter(
        title=" ".join(_first_text(fields, _TITLES).split()),
        summary=_first_text(fields, _SUMMARIES),
        occurred_at=occurred_at,
        tags=tuple(tag for name in _TAGS for text in _list_texts(fields.get(name)) for tag in _split_tags(str(text))),
        problems=tuple(unread),
    )


def _first_text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((str(text).strip() for name in names for text in _list_texts(fields.get(name))), "")


def _list_texts(value: Any) -> Iterator[object]:
    """Yield the scalars of a value; `[[2022-08-09]]` is a list in a list."""
    if isinstance(value, list):
        for inner in value:
            yield from _list_texts(inner)
    elif value is not None and not isinstance(value, dict) and str(value).strip() not in _NOTHING:
        yield value


def _split_tags(text: str) -> list[str]:
    separator = r"[,\s]+" if text.lstrip().startswith("#") else ","
    return [tag for part in re.split(separator, text) if (tag := part.strip().lstrip("#"))]
