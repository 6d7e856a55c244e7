"""The reader's time zone: a browser names it in a cookie that `frame.js` sets; without one, UTC."""

from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from flask import request

from pipeline.times import parse

COOKIE = "reverie-zone"
_MAX_CHARS = 64


def reader_zone() -> tzinfo:
    """Return the zone of whoever asks."""
    return _find_zone(request.cookies.get(COOKIE, "")[:_MAX_CHARS])


def zone_name() -> str:
    """Return what the reader's zone is called."""
    return str(reader_zone())


def to_reader(moment: str) -> datetime:
    """Return a stored moment in the reader's zone."""
    known = parse(moment)
    try:
        return known.astimezone(reader_zone())
    except OverflowError:
        # There, the first or the last day has no name.
        return known


def local_minute(moment: str) -> str:
    """Return a moment as date and time of day where the reader is."""
    return f"{to_reader(moment):%Y-%m-%d %H:%M}"


def local_day(moment: str) -> str:
    """Return the date of a moment where the reader is."""
    return to_reader(moment).date().isoformat()


def local_clock(moment: str) -> str:
    """Return the time of day of a moment where the reader is."""
    return f"{to_reader(moment):%H:%M}"


@lru_cache(maxsize=64)
def _find_zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    # Whatever a browser says: no zone, the name of a folder, or no zones on this machine.
    except (ValueError, KeyError, OSError):
        return UTC
