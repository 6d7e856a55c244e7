"""What several forms take."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, StringConstraints
from pydantic_core import PydanticCustomError

from pipeline.times import utc_text

MAX_SEARCH_CHARS = 200


def _to_utc_text(given: str) -> str:
    # A browser's `datetime-local` tells no zone; its label says that UTC is meant.
    try:
        moment = datetime.fromisoformat(given)
        return utc_text(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError) as error:
        raise PydanticCustomError("moment", "must be a date or a time in UTC, as 2026-03-01T12:00") from error


Moment = Annotated[str, AfterValidator(_to_utc_text)]
Search = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_SEARCH_CHARS)]
