"""Reverie's entries in a JSON file of a host."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from web.hosts.entries import Edited, Entry, Hook, Member, Place, Taken, Undo
from web.hosts.jsonc import Document, Node
from web.hosts.problems import CannotEdit

NEW = "{}\n"
BLANK = "\ufeff \t\r\n"


def add(text: str | None, entries: Sequence[Entry], undo: Undo) -> Edited:
    """Return the text with every entry in it, brought up to date where it was there already."""
    if text is not None and not text.strip(BLANK):
        undo = replace(undo, blank=text if undo.blank is None else undo.blank)
        text = None
    before = after = Document.read(NEW if text is None else text)
    remarks = []
    for entry in entries:
        assert isinstance(entry, Member | Hook)
        if isinstance(entry, Member) and _is_foreign(after, entry):
            remarks.append(f"{'.'.join((*entry.place, entry.key))} is somebody else's and stays as it is")
        else:
            after, undo = _added(after, entry, undo)
    _check(before, after, entries)
    return Edited(after.text, undo, tuple(remarks))


def remove(text: str, entries: Sequence[Entry], undo: Undo | None) -> Taken:
    """Return the text without the entries; undoes `add` exactly, given its record."""
    if not text.strip(BLANK):
        return Taken(text, bare=False)
    before = after = Document.read(text)
    for entry in reversed(entries):
        assert isinstance(entry, Member | Hook)
        after = _removed(after, entry, undo)
    _check(before, after, entries)
    # A comment that somebody left is worth keeping.
    bare = after is not before and not after.root.children and not after.inside(after.root).strip()
    blank = undo.blank if undo is not None else None
    return Taken(after.text if blank is None or not bare else blank, bare)


def _is_foreign(document: Document, entry: Member) -> bool:
    found = document.find((*entry.place, entry.key))
    return found is not None and not entry.ours(found.value)


def _added(document: Document, entry: Member | Hook, undo: Undo) -> tuple[Document, Undo]:
    document, undo = _with_containers(document, entry, undo)
    container = document.find(entry.place)
    assert container is not None
    found = container.member(entry.key) if isinstance(entry, Member) else _first_handler(container, entry)
    value = entry.value if isinstance(entry, Member) else entry.handler
    if found is not None:
        # What the user added to it, such as a switch that turns it off, is theirs.
        wanted = {**found.value, **value}
        return (document if found.value == wanted else document.replace(found, wanted)), undo
    if not container.children:
        undo = undo.also(entry.place, document.inside(container))
    if isinstance(entry, Member):
        return document.insert(container, entry.key, value), undo
    return document.insert(container, None, {"hooks": [value]}), undo


def _with_containers(document: Document, entry: Member | Hook, undo: Undo) -> tuple[Document, Undo]:
    for depth in range(len(entry.place) + 1):
        place = entry.place[:depth]
        is_list = isinstance(entry, Hook) and depth == len(entry.place)
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


def _handlers(groups: Node, entry: Hook) -> Iterator[tuple[int, Node, int]]:
    """Yield (index of the group, the group's array, index in it) of every handler that is Reverie's."""
    for number, group in enumerate(groups.children):
        handlers = group.node.member("hooks")
        if handlers is not None and handlers.kind == "array":
            for index, handler in enumerate(handlers.children):
                if isinstance(handler.node.value, dict) and entry.ours(handler.node.value):
                    yield number, handlers, index


def _first_handler(groups: Node, entry: Hook) -> Node | None:
    return next((handlers.children[index].node for _, handlers, index in _handlers(groups, entry)), None)


def _removed(document: Document, entry: Member | Hook, undo: Undo | None) -> Document:
    while True:
        container = document.find(entry.place)
        found = None if container is None else _ours(container, entry)
        if found is None:
            return document
        parent, index = found
        document = document.remove(parent, index)
        if parent is container:
            document = _settled(document, entry.place, undo)


def _ours(container: Node, entry: Member | Hook) -> tuple[Node, int] | None:
    """Return the container and index of a child that is Reverie's: a handler, or its group where it is alone."""
    if isinstance(entry, Member):
        keys = [child.key for child in container.children]
        found = container.member(entry.key)
        known = found is not None and entry.ours(found.value)
        return (container, len(keys) - 1 - keys[::-1].index(entry.key)) if known else None
    for number, handlers, index in _handlers(container, entry):
        return (container, number) if len(handlers.children) == 1 else (handlers, index)
    return None


def _settled(document: Document, place: Place, undo: Undo | None) -> Document:
    """Return the document with containers that have become empty as they were, from the inside out."""
    container = document.find(place)
    if container is None or container.children:
        return document
    inside = document.inside(container)
    before = None if undo is None else undo.inside.get(place)
    if before is not None and before.strip() == inside.strip():
        return document.with_inside(container, before)
    # Without a record an empty container is taken for one that was made for an entry.
    if inside.strip() or (undo is not None and place not in undo.created):
        return document
    if not place:
        return document if undo is not None else document.with_inside(container, "")
    parent = document.find(place[:-1])
    assert parent is not None
    index = max(i for i, child in enumerate(parent.children) if child.key == place[-1])
    return _settled(document.remove(parent, index), place[:-1], undo)


def _check(before: Document, after: Document, entries: Sequence[Entry]) -> None:
    """Refuse an edit that touched anything but the entries."""
    if before is not after and _without(before, entries) != _without(after, entries):
        raise CannotEdit("it is written in a way that is left alone")


def _without(document: Document, entries: Sequence[Entry]) -> Any:
    value = copy.deepcopy(document.root.value)
    for entry in entries:
        assert isinstance(entry, Member | Hook)
        _drop(value, entry.place, entry)
    return value


def _drop(value: Any, place: Place, entry: Member | Hook) -> None:
    if place:
        if isinstance(value, dict) and place[0] in value:
            _drop(value[place[0]], place[1:], entry)
            if not value[place[0]]:
                del value[place[0]]
    elif isinstance(entry, Member):
        if isinstance(value, dict) and entry.key in value and entry.ours(value[entry.key]):
            del value[entry.key]
    elif isinstance(value, list):
        for group in value:
            if isinstance(group, dict) and isinstance(group.get("hooks"), list):
                group["hooks"] = [h for h in group["hooks"] if not (isinstance(h, dict) and entry.ours(h))]
        value[:] = [group for group in value if group != {"hooks": []}]
