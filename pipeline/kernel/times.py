"""Times as text: RFC 3339, UTC, milliseconds; text order is time order."""

import re
import time
from datetime import UTC, date, datetime, time as clock, timedelta

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
MONTH_S = 365.25 / 12 * DAY_S
_DATE_CHARS = 10
_MIDNIGHT = "T00:00:00.000Z"

_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_RFC_3339 = re.compile(
    rf"(?P<start>{_DATE}(?:T[0-9]{{2}}:[0-9]{{2}}:))(?P<second>[0-9]{{2}})(?P<end>(?:\.[0-9]+)?(?:Z|[+-][0-9]{{2}}:[0-9]{{2}}))",
    re.IGNORECASE,
)
_WITHOUT_OFFSET = re.compile(rf"{_DATE}[T ][0-9]{{2}}:[0-9]{{2}}(?::[0-9]{{2}}(?:\.[0-9]+)?)?", re.IGNORECASE)


def utc_text(moment: datetime) -> str:
    """Render an aware datetime; raise OverflowError if its UTC form is outside the years 1 to 9999."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def utc_text_at(seconds: float) -> str:
    """Return the text of a time in seconds since 1970."""
    return utc_text(datetime.fromtimestamp(seconds, UTC))


def utc_now() -> str:
    """Return the current time as text."""
    return utc_text(datetime.now(UTC))


def local_day_start(day: date) -> datetime:
    """Return the start of a day in the local time zone."""
    return datetime.combine(day, clock()).astimezone(UTC)


def local_day_end(day: date) -> datetime:
    """Return the last millisecond of a day in the local time zone."""
    return local_day_start(day + timedelta(days=1)) - timedelta(milliseconds=1)


def local_date(text: str) -> str:
    """Return the date of a stored time in the local time zone."""
    return _format_local(text, len("2026-01-31"))


def local_minute(text: str) -> str:
    """Return a stored time to the minute in the local time zone."""
    return _format_local(text, len("2026-01-31 12:30"))


def local_second(text: str) -> str:
    """Return a stored time to the second in the local time zone."""
    return _format_local(text, len("2026-01-31 12:30:00"))


def _format_local(text: str, length: int) -> str:
    try:
        return parse(text).astimezone().isoformat()[:length]
    except (OverflowError, ValueError):
        # This zone cannot represent the time: it stays in UTC, with its mark.
        return f"{text[:length]}Z"


def due_age(text: str, now: datetime) -> str:
    """Return the distance from now to the time at which a goal is due.

    A date is stored as its midnight in UTC. Near that time, the end of the local day counts.
    """
    if text.endswith(_MIDNIGHT) and abs((parse(text) - now).total_seconds()) < DAY_S:
        text = utc_text(local_day_end(date.fromisoformat(text[:_DATE_CHARS])))
    return age(text, now)


def format_due(text: str) -> str:
    """Return the local date on which a goal is due."""
    return text[:_DATE_CHARS] if text.endswith(_MIDNIGHT) else local_date(text)


def parse(text: str) -> datetime:
    """Parse a time that `utc_text` rendered."""
    return datetime.fromisoformat(text)


def normalize_time(text: str) -> str:
    """Return an RFC 3339 date-time, or the start of a full-date in UTC, as UTC text; raise ValueError for other text.

    A number is not a time: "2030" would be a time in 1970.
    """
    if re.fullmatch(_DATE, text):
        return _to_text(text, "+00:00")
    match = _RFC_3339.fullmatch(text)
    if match is None:
        raise ValueError("must be an RFC 3339 date-time with an offset, or a date")
    if match["second"] == "60":
        # RFC 3339 allows leap seconds, Python's datetime does not.
        return _to_text(f"{match['start']}59{match['end']}", later=timedelta(seconds=1))
    return _to_text(text)


def normalize_typed_time(text: str) -> str:
    """Return a time that a person typed as UTC text; without an offset it is in UTC, and seconds are optional."""
    return _to_text(text, "+00:00") if _WITHOUT_OFFSET.fullmatch(text) else normalize_time(text)


def normalize_local_time(text: str) -> str:
    """Return a time that a person typed as UTC text; without an offset it is in the local time zone."""
    if not (_WITHOUT_OFFSET.fullmatch(text) or re.fullmatch(_DATE, text)):
        return normalize_time(text)
    # Checks the text, and names what is wrong with it.
    moment = parse(_to_text(text, "+00:00"))
    try:
        return utc_text(moment.replace(tzinfo=None).astimezone())
    except OverflowError as error:
        raise ValueError("must be in the years 1 to 9999 in UTC") from error


def _to_text(text: str, offset: str = "", later: timedelta = timedelta()) -> str:
    start = text if len(text) > len("2026-01-31") else f"{text}T00:00"
    try:
        return utc_text(datetime.fromisoformat(start.upper() + offset) + later)
    except OverflowError as error:
        raise ValueError("must be in the years 1 to 9999 in UTC") from error
    except ValueError as error:
        raise ValueError("must be a valid date and time in the years 1 to 9999") from error


def age(text: str, now: datetime) -> str:
    """Return the distance of a time from now: `just now`, `3 h ago`, `5 months ago`, `in 2 days`."""
    seconds = (now - parse(text)).total_seconds()
    span = _span(abs(seconds))
    if not span:
        return "just now"
    return f"{span} ago" if seconds > 0 else f"in {span}"


def format_duration(seconds: float) -> str:
    """Return a duration for a reader."""
    full_seconds = int(seconds)
    if full_seconds < 60:
        return f"{full_seconds} s"
    if full_seconds < 3600:
        return f"{full_seconds // 60} min {full_seconds % 60} s"
    if full_seconds < 86400:
        return f"{full_seconds // 3600} h {full_seconds % 3600 // 60} min"
    return f"{full_seconds // 86400} d {full_seconds % 86400 // 3600} h"


def _span(seconds: float) -> str:
    """Return a duration in its largest unit: days up to two months, months up to two years."""
    if seconds < DAY_S:
        # Both units are common, and shorter than their names.
        for unit, length in (("h", HOUR_S), ("min", MINUTE_S)):
            if seconds >= length:
                return f"{int(seconds // length)} {unit}"
        return ""
    months = int(seconds // MONTH_S)
    count, unit = (int(seconds // DAY_S), "day") if months < 2 else (months, "month")
    count, unit = (months // 12, "year") if months >= 24 else (count, unit)
    return f"{count} {unit}{'' if count == 1 else 's'}"


def elapsed_ms(began: float) -> float:
    """Return the milliseconds since a time (time.perf_counter seconds)."""
    return round((time.perf_counter() - began) * 1000, 3)
