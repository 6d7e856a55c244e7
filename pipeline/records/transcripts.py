"""The position up to which a transcript was read."""

from typing import NamedTuple


class TranscriptMark(NamedTuple):
    """A byte offset, and a digest of the bytes before it, by which a rewritten file is recognized."""

    offset: int
    digest: str | None
