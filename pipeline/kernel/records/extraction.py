"""What an extractor knows about a memory that it offers."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

# The metadata key of an extraction.
EXTRACTION: Final = "extraction"


class Disposition(StrEnum):
    """What an extractor advises: to store a memory, to let a person review it, or to drop it."""

    STORE = "store"
    REVIEW = "review"
    DROP = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The stated value, the words that state it, the certainty from 0 to 1, and the advice; None if unknown."""

    value: str | bool | int | float | None = None
    evidence: str | None = None
    confidence: float | None = None
    disposition: Disposition | None = None

    def as_metadata(self) -> dict[str, Any]:
        """Return the known fields as metadata of a memory."""
        known = {name: value for name, value in asdict(self).items() if value is not None}
        return {EXTRACTION: known} if known else {}


# A write without any.
NO_EXTRACTION: Final = Extraction()
