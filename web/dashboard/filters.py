"""Template filters that format values of records, in the time zone of the reader.

The time zone comes from the cookie that `frame.js` sets (default: UTC).
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from flask import request

from pipeline.kernel.kinds import render_text
from pipeline.kernel.records.people import display_name
from pipeline.kernel.times import parse

COOKIE = "reverie-zone"
_MAX_CHARS = 64


def reader_zone() -> tzinfo:
    """Return the time zone of the current request."""
    return _find_zone(request.cookies.get(COOKIE, "")[:_MAX_CHARS])


def zone_name() -> str:
    """Return the name of the reader's time zone."""
    return str(reader_zone())


def to_reader(moment: str) -> datetime:
    """Return a stored time in the reader's time zone."""
    known = parse(moment)
    try:
        return known.astimezone(reader_zone())
    except OverflowError:
        # The first or last possible day can fall outside the calendar in that time zone.
        return known


def local_minute(moment: str) -> str:
    """Return date and time of day in the reader's time zone."""
    return f"{to_reader(moment):%Y-%m-%d %H:%M}"


def local_day(moment: str) -> str:
    """Return the date in the reader's time zone."""
    return to_reader(moment).date().isoformat()


def local_clock(moment: str) -> str:
    """Return the time of day in the reader's time zone."""
    return f"{to_reader(moment):%H:%M}"


def find_day(now: datetime) -> tuple[datetime, datetime]:
    """Return the start and the end of the reader's day at a time."""
    zone = reader_zone()
    day = now.astimezone(zone).date()
    start, end = (datetime.combine(each, time.min, zone) for each in (day, day + timedelta(days=1)))
    return start, end


@lru_cache(maxsize=64)
def _find_zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    # The cookie can contain an unknown zone or the name of a directory, and this machine may have no zone data.
    except (ValueError, KeyError, OSError):
        return UTC


SHORT_ID_CHARS = 6
_UNITS = (("year", 31_557_600), ("month", 2_629_800), ("day", 86_400), ("h", 3600), ("min", 60))


def ago(moment: str | float | None, now: datetime) -> str:
    """Return the time between a past or future time and now, in words."""
    if moment is None:
        return "never"
    then = parse(moment) if isinstance(moment, str) else datetime.fromtimestamp(moment, UTC)
    seconds = (now - then).total_seconds()
    if abs(seconds) < 60:
        return "just now"
    name, length = next((name, length) for name, length in _UNITS if abs(seconds) >= length)
    count = int(abs(seconds) // length)
    text = f"{count} {name}{'s' if count > 1 and name in ('year', 'month', 'day') else ''}"
    return f"{text} ago" if seconds > 0 else f"in {text}"


def minute(moment: str) -> str:
    """Return date and time of day (UTC)."""
    return moment[:16].replace("T", " ")


def short_id(identity: str) -> str:
    """Return the end of an id, which commands accept as a short id."""
    return identity[-SHORT_ID_CHARS:]


def words(name: str) -> str:
    """Return an API name with spaces instead of underscores."""
    return name.replace("_", " ")


def preview(text: str, limit: int = 240) -> str:
    """Return the start of a text in one line."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit].rstrip()}…"


def number(count: float) -> str:
    """Return a number with thousands separators."""
    return f"{count:,}".replace(",", "\u202f")


def percent(share: float | None) -> str:
    """Return a share from 0 to 1 as a percentage."""
    return "–" if share is None else f"{share:.0%}"


def size(count: float) -> str:
    """Return a number of bytes with its unit."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def milliseconds(seconds: float | None) -> str:
    """Return a duration in milliseconds, or in seconds from 1 s."""
    if seconds is None:
        return "–"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def web_link(text: str) -> str | None:
    """Return an http or https address unchanged, else None: other schemes can run code."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return text if parts.scheme in ("http", "https") and parts.netloc else None


FILTERS: Mapping[str, Callable[..., Any]] = {
    "ago": ago,
    "minute": minute,
    "local_minute": local_minute,
    "local_day": local_day,
    "local_clock": local_clock,
    "short_id": short_id,
    "words": words,
    "preview": preview,
    "number": number,
    "percent": percent,
    "size": size,
    "milliseconds": milliseconds,
    "web_link": web_link,
    "agent_text": render_text,
    "name": display_name,
}
