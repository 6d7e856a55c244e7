"""A marked block in a text that people write: added at the end, taken out again exactly."""

import re
from collections.abc import Sequence

from web.hosts.entries import AddedEntries, EntryUndo, HostEntry, RemovedEntries, RulesBlock

BEGIN = "<!-- reverie:begin -->"
END = "<!-- reverie:end -->"
_BLOCK = re.compile(rf"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)


def add(text: str, body: str) -> str:
    """Return the text with the block at its end, or with the block that it has brought up to date."""
    newline = newline_of(text)
    block = f"{BEGIN}\n{body.strip()}\n{END}".replace("\n", newline)
    found = _BLOCK.search(text)
    if found is not None:
        return text[: found.start()] + block + text[found.end() :]
    return append(text, block, newline)


def remove(text: str) -> str:
    """Return the text without its block; undoes `add` exactly."""
    found = _BLOCK.search(text)
    return text if found is None else cut(text, found.start(), found.end())


def newline_of(text: str) -> str:
    """Return the line end that a text uses."""
    return "\r\n" if "\r\n" in text else "\n"


def append(text: str, part: str, newline: str) -> str:
    """Return the text with a part after a blank line; the text ends in a line break if it did before."""
    if not text.strip("\ufeff"):
        return text + part + newline
    if text.endswith("\n"):
        return text + newline + part + newline
    return text + newline + newline + part


def cut(text: str, start: int, end: int) -> str:
    """Return the text without a part and the blank line that `append` set before it."""
    closing = re.compile(r"\r?\n").match(text, end)
    before = text[:start]
    breaks = 1 if closing is not None else 2
    for _ in range(breaks):
        if before.endswith("\n"):
            before = before[:-1].removesuffix("\r") if before.endswith("\r\n") else before[:-1]
    return before + text[end if closing is None else closing.end() :]


def add_entries(text: str | None, entries: Sequence[HostEntry], undo: EntryUndo) -> AddedEntries:
    """Return the text with the block in it, brought up to date where it was there already."""
    [entry] = entries
    assert isinstance(entry, RulesBlock)
    return AddedEntries(add(entry.head if text is None else text, entry.body), undo)


def remove_entries(text: str, entries: Sequence[HostEntry], _undo: EntryUndo | None) -> RemovedEntries:
    """Return the text without the block; undoes `add` exactly."""
    [entry] = entries
    assert isinstance(entry, RulesBlock)
    after = remove(text)
    return RemovedEntries(after, bare=after != text and after in ("", entry.head))
