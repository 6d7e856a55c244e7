"""A marked block in a text that people write; removing it restores the text exactly."""

import re
from collections.abc import Sequence

from web.hosts.entries import AddedEntries, EntryUndo, HostEntry, RemovedEntries, RulesBlock

BEGIN = "<!-- reverie:begin -->"
END = "<!-- reverie:end -->"
_BLOCK = re.compile(rf"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)


def add(text: str, body: str) -> str:
    """Return the text with the block added at its end, or with its existing block updated."""
    newline = detect_newline(text)
    block = f"{BEGIN}\n{body.strip()}\n{END}".replace("\n", newline)
    match = _BLOCK.search(text)
    if match is not None:
        return text[: match.start()] + block + text[match.end() :]
    return append(text, block, newline)


def remove(text: str) -> str:
    """Return the text without its block; undoes `add` exactly."""
    match = _BLOCK.search(text)
    return text if match is None else cut(text, match.start(), match.end())


def detect_newline(text: str) -> str:
    """Return the line ending that a text uses."""
    return "\r\n" if "\r\n" in text else "\n"


def append(text: str, part: str, newline: str) -> str:
    """Return the text with a part appended after a blank line; a final line break is kept."""
    if not text.strip("\ufeff"):
        return text + part + newline
    if text.endswith("\n"):
        return text + newline + part + newline
    return text + newline + newline + part


def cut(text: str, start: int, end: int) -> str:
    """Return the text without a part and without the blank line that `append` put before it."""
    closing = re.compile(r"\r?\n").match(text, end)
    before = text[:start]
    breaks = 1 if closing is not None else 2
    for _ in range(breaks):
        if before.endswith("\n"):
            before = before[:-1].removesuffix("\r") if before.endswith("\r\n") else before[:-1]
    return before + text[end if closing is None else closing.end() :]


def add_entries(text: str | None, entries: Sequence[HostEntry], undo: EntryUndo) -> AddedEntries:
    """Return the text with the block added or updated."""
    [entry] = entries
    assert isinstance(entry, RulesBlock)
    return AddedEntries(add(entry.head if text is None else text, entry.body), undo)


def remove_entries(text: str, entries: Sequence[HostEntry], _undo: EntryUndo | None) -> RemovedEntries:
    """Return the text without the block; undoes `add` exactly."""
    [entry] = entries
    assert isinstance(entry, RulesBlock)
    after = remove(text)
    return RemovedEntries(after, bare=after != text and after in ("", entry.head))
