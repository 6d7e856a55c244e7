"""Add and remove Reverie's entries in a host's JSON file; keep every other byte."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
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
    drop_entry,
)
from web.hosts.jsonc import JsoncDocument, JsoncNode

NEW = "{}\n"
BLANK = "\ufeff \t\r\n"


def add_entries(text: str | None, entries: Sequence[HostEntry], undo: EntryUndo) -> AddedEntries:
    """Return the text with every entry added or updated."""
    if text is not None and not text.strip(BLANK):
        undo = replace(undo, blank=text if undo.blank is None else undo.blank)
        text = None
    before = after = JsoncDocument.read(_head(entries) or NEW if text is None else text)
    remarks = []
    for entry in entries:
        assert isinstance(entry, JsonMember | HookEntry)
        if isinstance(entry, JsonMember) and _is_foreign(after, entry):
            remarks.append(f"{'.'.join((*entry.place, entry.key))} was not added by Reverie and stays unchanged")
        else:
            after, undo = _add_entry(after, entry, undo)
    _check_rest(before, after, entries)
    return AddedEntries(after.text, undo, tuple(remarks))


def remove_entries(text: str, entries: Sequence[HostEntry], undo: EntryUndo | None) -> RemovedEntries:
    """Return the text without the entries; undoes `add_entries` exactly, given its record."""
    if not text.strip(BLANK):
        return RemovedEntries(text, bare=False)
    before = after = JsoncDocument.read(text)
    for entry in reversed(entries):
        assert isinstance(entry, JsonMember | HookEntry)
        after = _remove_entry(after, entry, undo)
    _check_rest(before, after, entries)
    # Keep a comment that the user left in the container.
    is_empty = not after.root.children and not after.inside(after.root).strip()
    bare = after is not before and (is_empty or after.text == _head(entries))
    blank = undo.blank if undo is not None else None
    return RemovedEntries(after.text if blank is None or not bare else blank, bare)


def _head(entries: Sequence[HostEntry]) -> str:
    return next((entry.head for entry in entries if isinstance(entry, HookEntry)), "")


def _is_foreign(document: JsoncDocument, entry: JsonMember) -> bool:
    node = document.find((*entry.place, entry.key))
    return node is not None and not entry.is_ours(node.value)


def _add_entry(
    document: JsoncDocument, entry: JsonMember | HookEntry, undo: EntryUndo
) -> tuple[JsoncDocument, EntryUndo]:
    document, undo = _add_containers(document, entry, undo)
    container = document.find(entry.place)
    assert container is not None
    if isinstance(entry, JsonMember):
        current, value = container.member(entry.key), entry.value
    else:
        value, own = entry.handler, _own_handlers(container, entry)
        current = next((handlers.children[index].node for _, handlers, index in own), None)
    if current is not None:
        # Keep the user's additions, such as a switch that turns the entry off.
        merged = {**current.value, **value}
        return (document if current.value == merged else document.replace(current, merged)), undo
    if not container.children:
        undo = undo.also(entry.place, document.inside(container))
    if isinstance(entry, JsonMember):
        return document.insert(container, entry.key, value), undo
    return document.insert(container, None, value if entry.is_flat else {"hooks": [value]}), undo


def _add_containers(
    document: JsoncDocument, entry: JsonMember | HookEntry, undo: EntryUndo
) -> tuple[JsoncDocument, EntryUndo]:
    for depth in range(len(entry.place) + 1):
        path = entry.place[:depth]
        is_list = isinstance(entry, HookEntry) and depth == len(entry.place)
        container = document.find(path)
        if container is None:
            parent = document.find(path[:-1])
            assert parent is not None
            if not parent.children:
                undo = undo.also(path[:-1], document.inside(parent))
            document = document.insert(parent, path[-1], [] if is_list else {})
            undo = replace(undo, created=undo.created | {path})
        elif not isinstance(container.value, list if is_list else dict):
            name = ".".join(path) or "the file"
            raise CannotEdit(f"{name} contains something other than an {'array' if is_list else 'object'}")
    return document, undo


def _own_handlers(groups: JsoncNode, entry: HookEntry) -> Iterator[tuple[int, JsoncNode, int]]:
    """Yield (group index, the group's array, index in it) of every handler of Reverie."""
    for number, group in enumerate(groups.children):
        if entry.is_flat and isinstance(group.node.value, dict) and entry.is_ours(group.node.value):
            yield number, groups, number
        handlers = group.node.member("hooks")
        if handlers is not None and isinstance(handlers.value, list):
            for index, handler in enumerate(handlers.children):
                if isinstance(handler.node.value, dict) and entry.is_ours(handler.node.value):
                    yield number, handlers, index


def _remove_entry(document: JsoncDocument, entry: JsonMember | HookEntry, undo: EntryUndo | None) -> JsoncDocument:
    while True:
        container = document.find(entry.place)
        located = None if container is None else _find_ours(container, entry)
        if located is None:
            return document
        parent, index = located
        document = document.remove(parent, index)
        if parent is container:
            document = _restore_empty_containers(document, entry.place, undo)


def _find_ours(container: JsoncNode, entry: JsonMember | HookEntry) -> tuple[JsoncNode, int] | None:
    """Return container and index of Reverie's child: a handler, or its group if the group has no other handler."""
    if isinstance(entry, JsonMember):
        keys = [child.key for child in container.children]
        member = container.member(entry.key)
        is_ours = member is not None and entry.is_ours(member.value)
        return (container, len(keys) - 1 - keys[::-1].index(entry.key)) if is_ours else None
    for number, handlers, index in _own_handlers(container, entry):
        return (container, number) if len(handlers.children) == 1 else (handlers, index)
    return None


def _restore_empty_containers(document: JsoncDocument, path: KeyPath, undo: EntryUndo | None) -> JsoncDocument:
    """Restore containers that became empty to their original text, from the inside out."""
    container = document.find(path)
    if container is None or container.children:
        return document
    inside = document.inside(container)
    before = None if undo is None else undo.inside.get(path)
    if before is not None and before.strip() == inside.strip():
        return document.with_inner_text(container, before)
    # Without a record, assume that an empty container was created for an entry.
    if inside.strip() or (undo is not None and path not in undo.created):
        return document
    if not path:
        return document if undo is not None else document.with_inner_text(container, "")
    parent = document.find(path[:-1])
    assert parent is not None
    index = max(i for i, child in enumerate(parent.children) if child.key == path[-1])
    return _restore_empty_containers(document.remove(parent, index), path[:-1], undo)


def _check_rest(before: JsoncDocument, after: JsoncDocument, entries: Sequence[HostEntry]) -> None:
    if before is not after and _rest_of(before, entries) != _rest_of(after, entries):
        raise CannotEdit("it is written in a form that Reverie does not edit")


def _rest_of(document: JsoncDocument, entries: Sequence[HostEntry]) -> Any:
    value = copy.deepcopy(document.root.value)
    for entry in entries:
        if isinstance(entry, JsonMember):
            drop_entry(value, (*entry.place, entry.key), entry.is_ours)
        elif isinstance(entry, HookEntry):
            drop_entry(value, entry.place, partial(_drop_handlers, entry))
    return value


def _drop_handlers(entry: HookEntry, groups: Any) -> bool:
    """Drop Reverie's handlers from an event's groups; return whether no group is left."""
    if isinstance(groups, list):
        for group in groups:
            if isinstance(group, dict) and isinstance(group.get("hooks"), list):
                group["hooks"] = [h for h in group["hooks"] if not (isinstance(h, dict) and entry.is_ours(h))]
        rest = [group for group in groups if group != {"hooks": []}]
        groups[:] = [one for one in rest if not (entry.is_flat and isinstance(one, dict) and entry.is_ours(one))]
    return not groups
