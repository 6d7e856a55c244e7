"""Time zone of the reader, from the cookie that `frame.js` sets (default: UTC)."""

from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from flask import request

from pipeline.times import parse

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
