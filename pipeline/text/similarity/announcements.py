"""Remove announcements from a statement: "Decision:", "from now on", "in this project"."""

import re
from typing import Final

from pipeline.text.similarity import vocabulary as v


def _any_of(phrases: tuple[str, ...]) -> str:
    return "|".join(re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True))


_ANNOUNCES: Final = re.compile(
    rf"\A(?:\s*(?:(?:{_any_of(v.LABELS)})(?: (?:of|for) (?:this|the|our) \w+)?\s*:|(?:{_any_of(v.OPENINGS)})\b,?))*\s*",
    re.IGNORECASE,
)
_ANNOUNCED: Final = re.compile(
    # Not from within white space: long runs of it would be tried from each of their places.
    rf"(?<!\s)(?:,?\s+(?:{_any_of(v.ENDINGS)}))*\s*(?:[.!]\s*)?\Z",
    re.IGNORECASE,
)


def strip_announcement(text: str) -> str:
    """Return a statement without its announcement."""
    return _ANNOUNCED.sub("", _ANNOUNCES.sub("", text, count=1))
