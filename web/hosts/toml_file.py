"""Reverie's entries in a TOML file of a host."""

import copy
from collections.abc import Sequence
from typing import Any

from web.hosts import toml
from web.hosts.entries import Edited, Entry, Key, Table, Taken, Undo
from web.hosts.problems import CannotEdit


def add(text: str | None, entries: Sequence[Entry], undo: Undo) -> Edited:
    """Return the text with every entry in it, brought up to date where it was there already."""
    before = text or ""
    after, remarks = before, []
    for entry in entries:
        assert isinstance(entry, Key | Table)
        found = _found(toml.parse(after), entry)
        if found is not None and not entry.ours(found):
            remarks.append(f"{_name(entry)} is somebody else's and stays as it is")
        else:
            after = _added(after, entry, found)
    _check(before, after, entries)
    return Edited(after, undo, tuple(remarks))


def remove(text: str, entries: Sequence[Entry], _undo: Undo | None) -> Taken:
    """Return the text without the entries; undoes `add` exactly."""
    after = text
    for entry in reversed(entries):
        assert isinstance(entry, Key | Table)
        found = _found(toml.parse(after), entry)
        if found is not None and entry.ours(found):
            after = toml.remove_key(after, entry.name) if isinstance(entry, Key) else _without_table(after, entry)
    _check(text, after, entries)
    return Taken(after, bare=after != text and not after.strip("\ufeff"))


def _added(text: str, entry: Key | Table, found: Any) -> str:
    if isinstance(entry, Key):
        if found is None:
            return toml.add_key(text, entry.name, entry.value)
        return text if found == entry.value else toml.replace_key(text, (), entry.name, entry.value)
    if found is None:
        return toml.add_table(text, entry.place, entry.value)
    # What the user added to it, such as a longer timeout, is theirs.
    for key, value in entry.value.items():
        if key in found and found[key] != value:
            text = toml.replace_key(text, entry.place, key, value)
        elif key not in found:
            raise CannotEdit(f"{_name(entry)} has no {key}; take it out and run the setup again")
    return text


def _without_table(text: str, entry: Table) -> str:
    after = toml.remove_table(text, entry.place)
    if _found(toml.parse(after), entry) is not None:
        raise CannotEdit(f"{_name(entry)} is written in a way that is left alone")
    return after


def _found(document: Any, entry: Key | Table) -> Any:
    place = (entry.name,) if isinstance(entry, Key) else entry.place
    for key in place:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _name(entry: Key | Table) -> str:
    return entry.name if isinstance(entry, Key) else ".".join(entry.place)


def _check(before: str, after: str, entries: Sequence[Entry]) -> None:
    """Refuse an edit that touched anything but the entries."""
    known = _without(before, entries)
    try:
        is_known = _without(after, entries) == known
    except CannotEdit as error:
        raise CannotEdit("it is written in a way that is left alone") from error
    if not is_known:
        raise CannotEdit("it is written in a way that is left alone")


def _without(text: str, entries: Sequence[Entry]) -> Any:
    document = copy.deepcopy(toml.parse(text))
    for entry in entries:
        assert isinstance(entry, Key | Table)
        _drop(document, (entry.name,) if isinstance(entry, Key) else entry.place, entry)
    return document


def _drop(value: Any, place: tuple[str, ...], entry: Key | Table) -> None:
    if not isinstance(value, dict) or place[0] not in value:
        return
    if len(place) > 1:
        _drop(value[place[0]], place[1:], entry)
        if not value[place[0]]:
            del value[place[0]]
    elif entry.ours(value[place[0]]):
        del value[place[0]]
