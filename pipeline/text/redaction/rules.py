import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

MARKER: Final = r"\[REDACTED:[a-z0-9-]+\]"
NOTHING: Final = re.compile(rf"(?:{MARKER}|[\W_])*+")  # markers and punctuation only
IDENTIFIER: Final = re.compile(  # a hash, a ULID or a UUID
    r"[0-9a-f]{16,}|[0-9A-F]{16,}|[0-7][0-9A-HJKMNP-TV-Z]{25}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)


class Found(NamedTuple):
    """Where a secret stands in a text, and its kind."""

    start: int
    end: int
    kind: str


Finder = Callable[[str], Iterator[Found]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A finder and the substrings, lower case where case is folded, of which one must wake it."""

    triggers: tuple[str, ...]
    find: Finder
    folds_case: bool = False


def has_digit(token: str) -> bool:
    """Say whether a token holds a digit."""
    return any(letter in string.digits for letter in token)


def looks_random(token: str) -> bool:
    """Say whether a run of letters and digits, long enough to be no word, holds a digit."""
    return any(has_digit(run) for run in re.findall(r"[A-Za-z0-9]{10,}", token))
