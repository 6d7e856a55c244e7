"""TOML as text: a top-level key and a table, added and taken out with every other byte kept.

The standard library tells where statements end, and tomlkit writes another value without touching its line's comment.
It does not add and remove: of 1,500 drawn files it gave 302 back as they were, and it removes what somebody wrote below
a table with the table.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import tomlkit

from web.hosts.block import append, cut, newline_of
from web.hosts.entries import (
    AddedEntries,
    CannotEdit,
    EntryUndo,
    HostEntry,
    RemovedEntries,
    TomlKey,
    TomlTable,
    drop_own,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """The lines of a header or an assignment, without the last one's end; and what they say by themselves."""

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
    """Read a text; raise CannotEdit where it is not TOML."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise CannotEdit(f"it is not valid TOML: {error}") from error


def statements(text: str) -> Iterator[Statement]:
    """Yield the headers and assignments of a valid text in order: each ends with the line that makes it whole."""
    start = int(text.startswith("\ufeff"))
    for line in re.compile(r"[^\n]*\n|[^\n]+").finditer(text, start):
        lines = text[start : line.end()]
        value = _read_statement(lines)
        if value:
            yield Statement(start, start + len(lines.rstrip("\r\n")), value, lines.lstrip().startswith("["))
        if value is not None:
            start = line.end()


def _read_statement(lines: str) -> dict[str, Any] | None:
    """Return what lines say, None where they are only the beginning of a statement."""
    try:
        return tomllib.loads(lines)
    except tomllib.TOMLDecodeError:
        return None


def add_key(text: str, name: str, value: Any) -> str:
    """Return the text with a top-level key, after the other top-level keys."""
    line = f"{name} = {render_value(value)}"
    newline = newline_of(text)
    found = list(statements(text))
    top = _until_header(found)
    if top:
        return text[: top[-1].end] + newline + line + text[top[-1].end :]
    if found:
        place = _above_comments(text, found[0].start)
        return text[:place] + line + newline + newline + text[place:]
    if not text.strip("\ufeff") or text.endswith("\n"):
        return text + line + newline
    return text + newline + line


def remove_key(text: str, name: str) -> str:
    """Return the text without a top-level key; undoes `add_key` exactly."""
    found = list(statements(text))
    top = _until_header(found)
    index = next(i for i, s in enumerate(top) if name in s.value)
    head, rest = text[: top[index].start], text[top[index].end :]
    if index or not rest:
        # It stands after another key, or ends the file: it came with the line break before it.
        return re.sub(r"\r?\n\Z", "", head) + rest
    breaks = 2 if len(top) == 1 and len(found) > 1 else 1
    return head + re.sub(rf"\A(?:\r?\n){{1,{breaks}}}", "", rest)


def replace_key(text: str, table: Sequence[str], name: str, value: Any) -> str:
    """Return the text with another value for a key, of a table or, where that is empty, of the top."""
    header: tuple[str, ...] = ()
    for statement in statements(text):
        if statement.is_header:
            header = statement.path()
        elif header == tuple(table) and name in statement.value:
            line = tomlkit.parse(text[statement.start : statement.end])
            line[name] = tomlkit.value(render_value(value))
            return f"{text[: statement.start]}{line.as_string()}{text[statement.end :]}"
    raise CannotEdit(f"{'.'.join((*table, name))} is written in a way that is left alone")


def add_table(text: str, path: Sequence[str], values: Mapping[str, Any]) -> str:
    """Return the text with a table at its end."""
    newline = newline_of(text)
    lines = [f"[{'.'.join(path)}]", *(f"{key} = {render_value(value)}" for key, value in values.items())]
    return append(text, newline.join(lines), newline)


def remove_table(text: str, path: Sequence[str]) -> str:
    """Return the text without a table and the tables in it; undoes `add_table` exactly."""
    wanted = tuple(path)
    spans: list[tuple[int, int]] = []
    inside = False
    for statement in statements(text):
        if statement.is_header:
            inside = statement.path()[: len(wanted)] == wanted
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
    # A basic string of TOML takes the escapes of JSON, DEL aside.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def add_entries(text: str | None, entries: Sequence[HostEntry], undo: EntryUndo) -> AddedEntries:
    """Return the text with every entry in it, brought up to date where it was there already."""
    before = text or ""
    after, remarks = before, []
    for entry in entries:
        assert isinstance(entry, TomlKey | TomlTable)
        found = _find(parse(after), entry)
        if found is not None and not entry.is_ours(found):
            remarks.append(f"{'.'.join(entry.place)} is somebody else's and stays as it is")
        else:
            after = _add_entry(after, entry, found)
    _check_rest(before, after, entries)
    return AddedEntries(after, undo, tuple(remarks))


def remove_entries(text: str, entries: Sequence[HostEntry], _undo: EntryUndo | None) -> RemovedEntries:
    """Return the text without the entries; undoes `add` exactly."""
    after = text
    for entry in reversed(entries):
        assert isinstance(entry, TomlKey | TomlTable)
        found = _find(parse(after), entry)
        if found is not None and entry.is_ours(found):
            after = remove_key(after, entry.name) if isinstance(entry, TomlKey) else _remove_own_table(after, entry)
    _check_rest(text, after, entries)
    return RemovedEntries(after, bare=after != text and not after.strip("\ufeff"))


def _add_entry(text: str, entry: TomlKey | TomlTable, found: Any) -> str:
    if isinstance(entry, TomlKey):
        if found is None:
            return add_key(text, entry.name, entry.value)
        return text if found == entry.value else replace_key(text, (), entry.name, entry.value)
    if found is None:
        return add_table(text, entry.place, entry.value)
    # What the user added to it, such as a longer timeout, is theirs.
    for key, value in entry.value.items():
        if key in found and found[key] != value:
            text = replace_key(text, entry.place, key, value)
        elif key not in found:
            raise CannotEdit(f"{'.'.join(entry.place)} has no {key}; take it out and run the setup again")
    return text


def _remove_own_table(text: str, entry: TomlTable) -> str:
    after = remove_table(text, entry.place)
    if _find(parse(after), entry) is not None:
        raise CannotEdit(f"{'.'.join(entry.place)} is written in a way that is left alone")
    return after


def _find(document: Any, entry: TomlKey | TomlTable) -> Any:
    for key in entry.place:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _check_rest(before: str, after: str, entries: Sequence[HostEntry]) -> None:
    """Refuse an edit that touched anything but the entries."""
    known = _rest_of(before, entries)
    try:
        is_known = _rest_of(after, entries) == known
    except CannotEdit as error:
        raise CannotEdit("it is written in a way that is left alone") from error
    if not is_known:
        raise CannotEdit("it is written in a way that is left alone")


def _rest_of(text: str, entries: Sequence[HostEntry]) -> Any:
    document = parse(text)
    for entry in entries:
        assert isinstance(entry, TomlKey | TomlTable)
        drop_own(document, entry.place, entry.is_ours)
    return document


def _until_header(found: Sequence[Statement]) -> list[Statement]:
    return list(takewhile(lambda statement: not statement.is_header, found))


def _above_comments(text: str, place: int) -> int:
    """Return where the comment that belongs to a header begins: the lines right above it."""
    line = text.rfind("\n", 0, place) + 1
    while line > 0 and text[text.rfind("\n", 0, line - 1) + 1 : line].startswith("#"):
        line = text.rfind("\n", 0, line - 1) + 1
    # A byte order mark stays first.
    return line + text.startswith("\ufeff", line)
