"""Times as text: RFC 3339, UTC, milliseconds; text order is time order."""

from datetime import UTC, datetime


def utc_text(moment: datetime) -> str:
    """Render an aware moment; raises OverflowError where its UTC form has no year 1 to 9999."""
    utc = moment.astimezone(UTC)
    return f"{utc.year:04d}-{utc:%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"


def utc_now() -> str:
    """Return the present moment as text."""
    return utc_text(datetime.now(UTC))


def parse(text: str) -> datetime:
    """Read a moment that `utc_text` rendered."""
    return datetime.fromisoformat(text)
