"""TOML as text: a top-level key and a table, added and taken out with every other byte kept.

tomlkit keeps comments but not this promise: of 1,500 drawn files it gave 302 back as they were, and it removes what
somebody wrote below a table with the table.
"""

import copy
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from web.hosts.block import append, cut, newline_of
from web.hosts.entries import AddedEntries, CannotEdit, EntryUndo, HostEntry, RemovedEntries, TomlKey, TomlTable

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|#[^\n]*)*")
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}\n]|[^"\'#\[\]{}\n]+',
    re.DOTALL,
)
_HEADER = re.compile(r'\[\[?((?:[^\]"\'\n]|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\')*)\]\]?')


@dataclass(frozen=True, slots=True)
class Statement:
    """A table's header or an assignment, from its first sign to the last of its line, comment excluded."""

    start: int
    end: int
    header: tuple[str, ...] | None
    key: tuple[str, ...] = ()


def parse(text: str) -> dict[str, Any]:
    """Read a text; raise CannotEdit where it is not TOML."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise CannotEdit(f"it is not valid TOML: {error}") from error


def statements(text: str) -> Iterator[Statement]:
    """Yield the headers and assignments of a valid text in order."""
    place = _skip_blank(text, 0)
    while place < len(text):
        header = _HEADER.match(text, place) if text[place] == "[" else None
        if header is not None:
            yield Statement(place, header.end(), _split_name(header[1]))
            place = _skip_blank(text, header.end())
            continue
        end = _assignment_end(text, place)
        yield Statement(place, end, None, _split_name(_read_key(text, place)))
        place = _skip_blank(text, end)


def add_key(text: str, name: str, value: Any) -> str:
    """Return the text with a top-level key, after the other top-level keys."""
    line = f"{name} = {render_value(value)}"
    newline = newline_of(text)
    found = list(statements(text))
    top = list(_until_header(found))
    if top:
        place = _find_line_end(text, top[-1].end)
        return text[:place] + newline + line + text[place:]
    if found:
        place = _above_comments(text, found[0].start)
        return text[:place] + line + newline + newline + text[place:]
    if not text.strip("\ufeff") or text.endswith("\n"):
        return text + line + newline
    return text + newline + line


def remove_key(text: str, name: str) -> str:
    """Return the text without a top-level key; undoes `add_key` exactly."""
    found = list(statements(text))
    top = list(_until_header(found))
    index = next(i for i, s in enumerate(top) if s.key == (name,))
    start, end = top[index].start, top[index].end
    after = re.compile(r"[ \t]*(\r?\n)?").match(text, end)
    rest = end if after is None else after.end()
    if index or after is None or after[1] is None:
        # It stands after another key, or ends the file: it came with the line break before it.
        head = text[:start]
        head = head[:-2] if head.endswith("\r\n") else head.removesuffix("\n")
        return head + text[end:]
    if len(top) == 1 and len(found) > 1:
        blank = re.compile(r"\r?\n").match(text, rest)
        rest = rest if blank is None else blank.end()
    return text[:start] + text[rest:]


def replace_key(text: str, table: Sequence[str], name: str, value: Any) -> str:
    """Return the text with another value for a key, of a table or, where that is empty, of the top."""
    header: tuple[str, ...] = ()
    for statement in statements(text):
        if statement.header is not None:
            header = statement.header
        elif (*header, *statement.key) == (*table, name):
            return f"{text[: statement.start]}{name} = {render_value(value)}{text[statement.end :]}"
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
        if statement.header is not None:
            inside = statement.header[: len(wanted)] == wanted
            if inside:
                spans.append((statement.start, statement.end))
        elif inside:
            spans[-1] = (spans[-1][0], statement.end)
    for start, end in reversed(spans):
        text = cut(text, start, _find_line_end(text, end))
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
            remarks.append(f"{_entry_name(entry)} is somebody else's and stays as it is")
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
            raise CannotEdit(f"{_entry_name(entry)} has no {key}; take it out and run the setup again")
    return text


def _remove_own_table(text: str, entry: TomlTable) -> str:
    after = remove_table(text, entry.place)
    if _find(parse(after), entry) is not None:
        raise CannotEdit(f"{_entry_name(entry)} is written in a way that is left alone")
    return after


def _find(document: Any, entry: TomlKey | TomlTable) -> Any:
    place = (entry.name,) if isinstance(entry, TomlKey) else entry.place
    for key in place:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _entry_name(entry: TomlKey | TomlTable) -> str:
    return entry.name if isinstance(entry, TomlKey) else ".".join(entry.place)


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
    document = copy.deepcopy(parse(text))
    for entry in entries:
        assert isinstance(entry, TomlKey | TomlTable)
        _drop(document, (entry.name,) if isinstance(entry, TomlKey) else entry.place, entry)
    return document


def _drop(value: Any, place: tuple[str, ...], entry: TomlKey | TomlTable) -> None:
    if not isinstance(value, dict) or place[0] not in value:
        return
    if len(place) > 1:
        _drop(value[place[0]], place[1:], entry)
        if not value[place[0]]:
            del value[place[0]]
    elif entry.is_ours(value[place[0]]):
        del value[place[0]]


def _until_header(found: Sequence[Statement]) -> Iterator[Statement]:
    for statement in found:
        if statement.header is not None:
            return
        yield statement


def _above_comments(text: str, place: int) -> int:
    """Return where the comment that belongs to a header begins: the lines right above it."""
    line = text.rfind("\n", 0, place) + 1
    while line > 0 and text[text.rfind("\n", 0, line - 1) + 1 : line].startswith("#"):
        line = text.rfind("\n", 0, line - 1) + 1
    # A byte order mark stays first.
    return line + text.startswith("\ufeff", line)


def _skip_blank(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    return place if found is None else found.end()


def _find_line_end(text: str, place: int) -> int:
    found = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?=\r?\n|\Z)").match(text, place)
    return place if found is None else found.end()


def _read_key(text: str, place: int) -> str:
    found = re.compile(r'(?:[^="\'\n]|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\')*').match(text, place)
    return "" if found is None else found[0]


def _split_name(dotted: str) -> tuple[str, ...]:
    parts = re.findall(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|[A-Za-z0-9_-]+', dotted)
    return tuple(part.strip("'") if part[0] == "'" else json.loads(part) if part[0] == '"' else part for part in parts)


def _assignment_end(text: str, place: int) -> int:
    depth = 0
    end = place
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise CannotEdit("it is written in a way that is left alone")
        part = found[0]
        place = found.end()
        if part == "\n":
            if depth == 0:
                return end
        elif not part.startswith("#"):
            depth += (part in "[{") - (part in "]}")
            end = found.start() + len(part.rstrip())
    return end
