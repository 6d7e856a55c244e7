"""Add and remove an entry of a top-level mapping in a YAML text; keep every other byte.

PyYAML finds the lines. Only mappings in block style, with a key per line, are edited.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import yaml

from web.hosts.entries import (
    AddedEntries,
    CannotEdit,
    EntryUndo,
    HostEntry,
    JsonMember,
    RemovedEntries,
    drop_entry,
)
from web.hosts.rules_block import append, cut, detect_newline

INDENT = 2


def add_entries(text: str | None, entries: Sequence[HostEntry], undo: EntryUndo) -> AddedEntries:
    """Return the text with the entry added or updated."""
    [entry] = entries
    assert isinstance(entry, JsonMember)
    if text is not None and not text.strip():
        undo, text = replace(undo, blank=text if undo.blank is None else undo.blank), None
    before = text or ""
    [name], newline = entry.place, detect_newline(before)
    values = _parse(before)
    members = values.get(name)
    current = members.get(entry.key) if isinstance(members, dict) else None
    if current is not None and not entry.is_ours(current):
        return AddedEntries(before, undo, (f"{name}.{entry.key} was not added by Reverie and stays unchanged",))
    merged = {**(current or {}), **entry.value}
    if current == merged:
        return AddedEntries(before, undo)
    key, container = _find_member(_compose(before), name)
    if key is None:
        part = f"{name}:{newline}{_render(entry.key, merged, INDENT, newline)}".removesuffix(newline)
        after, undo = append(before, part, newline), replace(undo, created=undo.created | {entry.place})
    else:
        column = _find_column(container, name)
        start, end = _find_lines(before, container, entry.key) or (_find_start(before, key, container),) * 2
        part = _render(entry.key, merged, column, newline)
        if end == len(before) and not before.endswith("\n"):
            part = part.removesuffix(newline)
        after = before[:start] + ("" if before[:start].endswith("\n") else newline) + part + before[end:]
    _check_rest(before, after, entry)
    return AddedEntries(after, undo)


def remove_entries(text: str, entries: Sequence[HostEntry], undo: EntryUndo | None) -> RemovedEntries:
    """Return the text without the entry; undoes `add_entries` exactly, given its record."""
    [entry] = entries
    assert isinstance(entry, JsonMember)
    [name] = entry.place
    members = _parse(text).get(name)
    if not (isinstance(members, dict) and entry.is_ours(members.get(entry.key))):
        return RemovedEntries(text, bare=False)
    key, container = _find_member(_compose(text), name)
    lines = _find_lines(text, container, entry.key)
    assert key is not None
    assert lines is not None
    start, end = lines
    if len(members) == 1 and (undo is None or entry.place in undo.created):
        after = cut(text, key.start_mark.index, len(text[:end].rstrip("\r\n")))
    else:
        before = text[:start] if text[:end].endswith("\n") else text[:start].removesuffix("\n").removesuffix("\r")
        after = before + text[end:]
    _check_rest(text, after, entry)
    blank = undo.blank if undo is not None else None
    return RemovedEntries(after if blank is None or after else blank, bare=not after)


def _parse(text: str) -> dict[str, Any]:
    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise CannotEdit(f"it is not valid YAML: {error}") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise CannotEdit("the file contains something other than a mapping")
    return values


def _compose(text: str) -> yaml.MappingNode | None:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None:
        return None
    if not isinstance(root, yaml.MappingNode) or root.flow_style or text.startswith("\ufeff"):
        raise CannotEdit("it is written in a form that Reverie does not edit")
    return root


def _find_member(mapping: yaml.Node | None, name: str) -> tuple[yaml.Node | None, yaml.Node | None]:
    """Return the nodes of a key and of its value."""
    members = mapping.value if isinstance(mapping, yaml.MappingNode) else ()
    return next(((key, value) for key, value in members if key.value == name), (None, None))


def _find_column(container: yaml.Node | None, name: str) -> int:
    """Return the column of the keys of a container in block style."""
    if isinstance(container, yaml.MappingNode) and not container.flow_style and container.value:
        return int(container.value[0][0].start_mark.column)
    if isinstance(container, yaml.ScalarNode) and container.value == "":
        return INDENT
    raise CannotEdit(f"{name} is written in a form that Reverie does not edit")


def _find_start(text: str, key: yaml.Node, container: yaml.Node | None) -> int:
    """Return where the first entry of a container starts, or the line after its key if it is empty."""
    if isinstance(container, yaml.MappingNode):
        first = container.value[0][0].start_mark
        return int(first.index - first.column)
    end = text.find("\n", key.end_mark.index)
    return len(text) if end < 0 else end + 1


def _find_lines(text: str, container: yaml.Node | None, name: str) -> tuple[int, int] | None:
    """Return the start and end of an entry's lines, with the last line break."""
    key, _ = _find_member(container, name)
    if key is None:
        return None
    start = key.start_mark.index - key.start_mark.column
    end = _end_of_line(text, start)
    while line := text[end : _end_of_line(text, end)].rstrip():
        if len(line) - len(line.lstrip(" ")) <= key.start_mark.column:
            break
        end = _end_of_line(text, end)
    return start, end


def _end_of_line(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1


def _render(key: str, value: dict[str, Any], column: int, newline: str) -> str:
    lines = [f"{key}:", *(f"{' ' * INDENT}{name}: {json.dumps(item)}" for name, item in value.items())]
    return "".join(f"{' ' * column}{line}{newline}" for line in lines)


def _check_rest(before: str, after: str, entry: JsonMember) -> None:
    rests = []
    for text in (before, after):
        values = _parse(text)
        if values.get(entry.place[0]) is None:
            values.pop(entry.place[0], None)
        drop_entry(values, (*entry.place, entry.key), entry.is_ours)
        rests.append(values)
    if rests[0] != rests[1]:
        raise CannotEdit("it is written in a form that Reverie does not edit")
