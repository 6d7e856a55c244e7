"""Reverie's entries in a JSON file of a host."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from web.hosts.entries import (
    AddedEntries,
    CannotEdit,
    EntryUndo,
    HookEntry,
    HostEntry,
    JsonMember,
    KeyPath,
    RemovedEntries,
)
from web.hosts.jsonc import JsoncDocument, JsoncNode

NEW = "{}\n"
BLANK = "\ufeff \t\r\n"


def add_entries(text: str | None, entries: Sequence[HostEntry], undo: EntryUndo) -> AddedEntries:
    """Return the text with every entry in it, brought up to date where it was there already."""
    if text is not None and not text.strip(BLANK):
        undo = replace(undo, blank=text if undo.blank is None else undo.blank)
        text = None
    before = after = JsoncDocument.read(NEW if text is None else text)
    remarks = []
    for entry in entries:
        assert isinstance(entry, JsonMember | HookEntry)
        if isinstance(entry, JsonMember) and _is_foreign(after, entry):
            remarks.append(f"{'.'.join((*entry.place, entry.key))} is somebody else's and stays as it is")
        else:
            after, undo = _add_entry(after, entry, undo)
    _check_rest(before, after, entries)
    return AddedEntries(after.text, undo, tuple(remarks))


def remove_entries(text: str, entries: Sequence[HostEntry], undo: EntryUndo | None) -> RemovedEntries:
    """Return the text without the entries; undoes `add` exactly, given its record."""
    if not text.strip(BLANK):
        return RemovedEntries(text, bare=False)
    before = after = JsoncDocument.read(text)
    for entry in reversed(entries):
        assert isinstance(entry, JsonMember | HookEntry)
        after = _remove_entry(after, entry, undo)
    _check_rest(before, after, entries)
    # A comment that somebody left is worth keeping.
    bare = after is not before and not after.root.children and not after.inside(after.root).strip()
    blank = undo.blank if undo is not None else None
    return RemovedEntries(after.text if blank is None or not bare else blank, bare)


def _is_foreign(document: JsoncDocument, entry: JsonMember) -> bool:
    found = document.find((*entry.place, entry.key))
    return found is not None and not entry.is_ours(found.value)


def _add_entry(
    document: JsoncDocument, entry: JsonMember | HookEntry, undo: EntryUndo
) -> tuple[JsoncDocument, EntryUndo]:
    document, undo = _add_containers(document, entry, undo)
    container = document.find(entry.place)
    assert container is not None
    found = container.member(entry.key) if isinstance(entry, JsonMember) else _first_handler(container, entry)
    value = entry.value if isinstance(entry, JsonMember) else entry.handler
    if found is not None:
        # What the user added to it, such as a switch that turns it off, is theirs.
        wanted = {**found.value, **value}
        return (document if found.value == wanted else document.replace(found, wanted)), undo
    if not container.children:
        undo = undo.also(entry.place, document.inside(container))
    if isinstance(entry, JsonMember):
        return document.insert(container, entry.key, value), undo
    return document.insert(container, None, {"hooks": [value]}), undo


def _add_containers(
    document: JsoncDocument, entry: JsonMember | HookEntry, undo: EntryUndo
) -> tuple[JsoncDocument, EntryUndo]:
    for depth in range(len(entry.place) + 1):
        place = entry.place[:depth]
        is_list = isinstance(entry, HookEntry) and depth == len(entry.place)
        container = document.find(place)
        if container is None:
            parent = document.find(place[:-1])
            assert parent is not None
            if not parent.children:
                undo = undo.also(place[:-1], document.inside(parent))
            document = document.insert(parent, place[-1], [] if is_list else {})
            undo = replace(undo, created=undo.created | {place})
        elif container.kind != ("array" if is_list else "object"):
            name = ".".join(place) or "the file"
            raise CannotEdit(f"{name} holds something other than an {'array' if is_list else 'object'}")
    return document, undo


def _own_handlers(groups: JsoncNode, entry: HookEntry) -> Iterator[tuple[int, JsoncNode, int]]:
    """Yield (index of the group, the group's array, index in it) of every handler that is Reverie's."""
    for number, group in enumerate(groups.children):
        handlers = group.node.member("hooks")
        if handlers is not None and handlers.kind == "array":
            for index, handler in enumerate(handlers.children):
                if isinstance(handler.node.value, dict) and entry.is_ours(handler.node.value):
                    yield number, handlers, index


def _first_handler(groups: JsoncNode, entry: HookEntry) -> JsoncNode | None:
    return next((handlers.children[index].node for _, handlers, index in _own_handlers(groups, entry)), None)


def _remove_entry(document: JsoncDocument, entry: JsonMember | HookEntry, undo: EntryUndo | None) -> JsoncDocument:
    while True:
        container = document.find(entry.place)
        found = None if container is None else _find_ours(container, entry)
        if found is None:
            return document
        parent, index = found
        document = document.remove(parent, index)
        if parent is container:
            document = _restore_empty_containers(document, entry.place, undo)


def _find_ours(container: JsoncNode, entry: JsonMember | HookEntry) -> tuple[JsoncNode, int] | None:
    """Return the container and index of a child that is Reverie's: a handler, or its group where it is alone."""
    if isinstance(entry, JsonMember):
        keys = [child.key for child in container.children]
        found = container.member(entry.key)
        known = found is not None and entry.is_ours(found.value)
        return (container, len(keys) - 1 - keys[::-1].index(entry.key)) if known else None
    for number, handlers, index in _own_handlers(container, entry):
        return (container, number) if len(handlers.children) == 1 else (handlers, index)
    return None


def _restore_empty_containers(document: JsoncDocument, place: KeyPath, undo: EntryUndo | None) -> JsoncDocument:
    """Return the document with containers that have become empty as they were, from the inside out."""
    container = document.find(place)
    if container is None or container.children:
        return document
    inside = document.inside(container)
    before = None if undo is None else undo.inside.get(place)
    if before is not None and before.strip() == inside.strip():
        return document.with_inner_text(container, before)
    # Without a record an empty container is taken for one that was made for an entry.
    if inside.strip() or (undo is not None and place not in undo.created):
        return document
    if not place:
        return document if undo is not None else document.with_inner_text(container, "")
    parent = document.find(place[:-1])
    assert parent is not None
    index = max(i for i, child in enumerate(parent.children) if child.key == place[-1])
    return _restore_empty_containers(document.remove(parent, index), place[:-1], undo)


def _check_rest(before: JsoncDocument, after: JsoncDocument, entries: Sequence[HostEntry]) -> None:
    """Refuse an edit that touched anything but the entries."""
    if before is not after and _rest_of(before, entries) != _rest_of(after, entries):
        raise CannotEdit("it is written in a way that is left alone")


def _rest_of(document: JsoncDocument, entries: Sequence[HostEntry]) -> Any:
    value = copy.deepcopy(document.root.value)
    for entry in entries:
        assert isinstance(entry, JsonMember | HookEntry)
        _drop(value, entry.place, entry)
    return value


def _drop(value: Any, place: KeyPath, entry: JsonMember | HookEntry) -> None:
    if place:
        if isinstance(value, dict) and place[0] in value:
            _drop(value[place[0]], place[1:], entry)
            if not value[place[0]]:
                del value[place[0]]
    elif isinstance(entry, JsonMember):
        if isinstance(value, dict) and entry.key in value and entry.is_ours(value[entry.key]):
            del value[entry.key]
    elif isinstance(value, list):
        for group in value:
            if isinstance(group, dict) and isinstance(group.get("hooks"), list):
                group["hooks"] = [h for h in group["hooks"] if not (isinstance(h, dict) and entry.is_ours(h))]
        value[:] = [group for group in value if group != {"hooks": []}]
