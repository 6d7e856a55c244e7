"""Add and remove a top-level key or a table in a TOML text; keep every other byte.

The standard library finds the ends of statements, and tomlkit replaces a value without touching the comment of its
line. tomlkit does not add and remove: of 1,500 generated files it restored only 302 exactly, and with a table it
removes the comments below it.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import tomlkit

from web.hosts.entries import (
    AddedEntries,
    CannotEdit,
    EntryUndo,
    HostEntry,
    RemovedEntries,
    TomlKey,
    TomlTable,
    drop_entry,
)
from web.hosts.rules_block import append, cut, detect_newline


@dataclass(frozen=True, slots=True)
class Statement:
    """The lines of a header or an assignment, without the last line ending, and their parsed values."""

    start: int
    end: int
    value: Mapping[str, Any]
    is_header: bool

    def path(self) -> tuple[str, ...]:
        """Return the path that a header names."""
        path: list[str] = []
        inner: Any = self.value
        while isinstance(inner, dict) and inner:
            [name] = inner
            path.append(name)
            inner = inner[name]
        return tuple(path)


def parse(text: str) -> dict[str, Any]:
    """Parse a text; raise CannotEdit if it is not TOML."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise CannotEdit(f"it is not valid TOML: {error}") from error


def statements(text: str) -> Iterator[Statement]:
    """Yield the headers and assignments of a valid text in order."""
    start = int(text.startswith("\ufeff"))
    for line in re.compile(r"[^\n]*\n|[^\n]+").finditer(text, start):
        lines = text[start : line.end()]
        value = _read_statement(lines)
        if value:
            yield Statement(start, start + len(lines.rstrip("\r\n")), value, lines.lstrip().startswith("["))
        if value is not None:
            start = line.end()


def _read_statement(lines: str) -> dict[str, Any] | None:
    """Return the parsed lines, or None if they are only the start of a statement."""
    try:
        return tomllib.loads(lines)
    except tomllib.TOMLDecodeError:
        return None


def add_key(text: str, name: str, value: Any) -> str:
    """Return the text with another key after its top-level keys."""
    line = f"{name} = {render_value(value)}"
    newline = detect_newline(text)
    all_statements = list(statements(text))
    top = _until_header(all_statements)
    if top:
        return text[: top[-1].end] + newline + line + text[top[-1].end :]
    if all_statements:
        position = _above_comments(text, all_statements[0].start)
        return text[:position] + line + newline + newline + text[position:]
    if not text.strip("\ufeff") or text.endswith("\n"):
        return text + line + newline
    return text + newline + line


def remove_key(text: str, name: str) -> str:
    """Return the text without a top-level key; undoes `add_key` exactly."""
    all_statements = list(statements(text))
    top = _until_header(all_statements)
    index = next(i for i, s in enumerate(top) if name in s.value)
    head, rest = text[: top[index].start], text[top[index].end :]
    if index or not rest:
        # The key follows another key or ends the file: it was added with the line break before it.
        return re.sub(r"\r?\n\Z", "", head) + rest
    breaks = 2 if len(top) == 1 and len(all_statements) > 1 else 1
    return head + re.sub(rf"\A(?:\r?\n){{1,{breaks}}}", "", rest)


def replace_key(text: str, table: Sequence[str], name: str, value: Any) -> str:
    """Return the text with another value for a key of a table or, with an empty table, for a top-level key."""
    header: tuple[str, ...] = ()
    for statement in statements(text):
        if statement.is_header:
            header = statement.path()
        elif header == tuple(table) and name in statement.value:
            line = tomlkit.parse(text[statement.start : statement.end])
            line[name] = tomlkit.value(render_value(value))
            return f"{text[: statement.start]}{line.as_string()}{text[statement.end :]}"
    raise CannotEdit(f"{'.'.join((*table, name))} is written in a form that Reverie does not edit")


def add_table(text: str, path: Sequence[str], values: Mapping[str, Any]) -> str:
    """Return the text with a table at its end."""
    newline = detect_newline(text)
    lines = [f"[{'.'.join(path)}]", *(f"{key} = {render_value(value)}" for key, value in values.items())]
    return append(text, newline.join(lines), newline)


def remove_table(text: str, path: Sequence[str]) -> str:
    """Return the text without a table and its subtables; undoes `add_table` exactly."""
    full_path = tuple(path)
    spans: list[tuple[int, int]] = []
    inside = False
    for statement in statements(text):
        if statement.is_header:
            inside = statement.path()[: len(full_path)] == full_path
            if inside:
                spans.append((statement.start, statement.end))
        elif inside:
            spans[-1] = (spans[-1][0], statement.end)
    for start, end in reversed(spans):
        text = cut(text, start, end)
    return text


def render_value(value: Any) -> str:
    """Return a text, number, list or table as TOML on one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {render_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(render_value(item) for item in value) + "]"
    # A TOML basic string has the escapes of JSON, except for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def add_entries(text: str | None, entries: Sequence[HostEntry], undo: EntryUndo) -> AddedEntries:
    """Return the text with every entry added or updated."""
    before = text or ""
    after, remarks = before, []
    for entry in entries:
        assert isinstance(entry, TomlKey | TomlTable)
        current = _find(parse(after), entry)
        if current is not None and not entry.is_ours(current):
            remarks.append(f"{'.'.join(entry.place)} was not added by Reverie and stays unchanged")
        else:
            after = _add_entry(after, entry, current)
    _check_rest(before, after, entries)
    return AddedEntries(after, undo, tuple(remarks))


def remove_entries(text: str, entries: Sequence[HostEntry], _undo: EntryUndo | None) -> RemovedEntries:
    """Return the text without the entries; undoes `add_entries` exactly."""
    after = text
    for entry in reversed(entries):
        assert isinstance(entry, TomlKey | TomlTable)
        current = _find(parse(after), entry)
        if current is not None and entry.is_ours(current):
            after = remove_key(after, entry.name) if isinstance(entry, TomlKey) else _remove_own_table(after, entry)
    _check_rest(text, after, entries)
    return RemovedEntries(after, bare=after != text and not after.strip("\ufeff"))


def _add_entry(text: str, entry: TomlKey | TomlTable, current: Any) -> str:
    if isinstance(entry, TomlKey):
        if current is None:
            return add_key(text, entry.name, entry.value)
        return text if current == entry.value else replace_key(text, (), entry.name, entry.value)
    if current is None:
        return add_table(text, entry.place, entry.value)
    # Keep the user's additions, such as a longer timeout.
    for key, value in entry.value.items():
        if key in current and current[key] != value:
            text = replace_key(text, entry.place, key, value)
        elif key not in current:
            raise CannotEdit(f"{'.'.join(entry.place)} has no {key}; remove it and run the setup again")
    return text


def _remove_own_table(text: str, entry: TomlTable) -> str:
    after = remove_table(text, entry.place)
    if _find(parse(after), entry) is not None:
        raise CannotEdit(f"{'.'.join(entry.place)} is written in a form that Reverie does not edit")
    return after


def _find(document: Any, entry: TomlKey | TomlTable) -> Any:
    for key in entry.place:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _check_rest(before: str, after: str, entries: Sequence[HostEntry]) -> None:
    """Refuse an edit that changed anything but the entries."""
    other_values = _rest_of(before, entries)
    try:
        is_known = _rest_of(after, entries) == other_values
    except CannotEdit as error:
        raise CannotEdit("it is written in a form that Reverie does not edit") from error
    if not is_known:
        raise CannotEdit("it is written in a form that Reverie does not edit")


def _rest_of(text: str, entries: Sequence[HostEntry]) -> Any:
    document = parse(text)
    for entry in entries:
        assert isinstance(entry, TomlKey | TomlTable)
        drop_entry(document, entry.place, entry.is_ours)
    return document


def _until_header(all_statements: Sequence[Statement]) -> list[Statement]:
    return list(takewhile(lambda statement: not statement.is_header, all_statements))


def _above_comments(text: str, position: int) -> int:
    """Return the start of the comment lines directly above a header."""
    line = text.rfind("\n", 0, position) + 1
    while line > 0 and text[text.rfind("\n", 0, line - 1) + 1 : line].startswith("#"):
        line = text.rfind("\n", 0, line - 1) + 1
    # A byte order mark stays first.
    return line + text.startswith("\ufeff", line)
