"""What a reader hands on: items to be kept, those that did not change, and what it left out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pipeline.records import Draft

# How many commits of a history are read, the newest first, unless somebody says how many.
COMMITS = 2000


@dataclass(frozen=True, slots=True)
class Item:
    """Something that may be read again: `key` names it within its source, `digest` is the SHA-256 of what was read."""

    key: str
    digest: str
    drafts: tuple[Draft, ...]


@dataclass(frozen=True, slots=True)
class Unchanged:
    """An item that is kept already as it is."""

    key: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """What was left out, and why."""

    key: str
    reason: str


Reading = Item | Unchanged | Skipped
Readings = Iterator[Reading]
# The digest of every item that a source is known by.
Known = Mapping[str, str]
# Called with how much is done and how much there is, in whatever unit the reader counts.
Progress = Callable[[int, int], None]
