"""Reverie's block in a file of rules."""

from collections.abc import Sequence

from web.hosts import block
from web.hosts.entries import Block, Edited, Entry, Taken, Undo


def add(text: str | None, entries: Sequence[Entry], undo: Undo) -> Edited:
    """Return the text with the block in it, brought up to date where it was there already."""
    [entry] = entries
    assert isinstance(entry, Block)
    return Edited(block.add(entry.head if text is None else text, entry.body), undo)


def remove(text: str, entries: Sequence[Entry], _undo: Undo | None) -> Taken:
    """Return the text without the block; undoes `add` exactly."""
    [entry] = entries
    assert isinstance(entry, Block)
    after = block.remove(text)
    return Taken(after, bare=after != text and after in ("", entry.head))
