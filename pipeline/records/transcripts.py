"""Where the reading of a transcript stopped."""

from typing import NamedTuple


class TranscriptMark(NamedTuple):
    """An offset in bytes, and a digest of the bytes before it, by which a file that was rewritten is recognized."""

    offset: int
    digest: str | None
