"""JSON with comments as text: where each value stands, and edits that keep every other byte."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from web.hosts.entries import CannotEdit

_SKIPPED = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_REST_OF_LINE = re.compile(r"[ \t]*(?:/\*(?:(?!\*/)[^\r\n])*\*/[ \t]*)*(?://[^\r\n]*)?(?=\r?\n)")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_BREAK = re.compile(r"[ \t]*\r?\n")
_DEEPEST = 200


@dataclass(frozen=True, slots=True)
class JsoncNode:
    """A value and its span in the text; containers know their children."""

    kind: Literal["object", "array", "scalar"]
    start: int
    end: int
    value: Any
    children: tuple["Child", ...] = ()

    def member(self, key: str) -> "JsoncNode | None":
        """Return the value under a key, the last one where it is repeated."""
        return next((child.node for child in reversed(self.children) if child.key == key), None)


@dataclass(frozen=True, slots=True)
class Child:
    """A member of an object, which begins with its key, or an item of an array."""

    start: int
    node: JsoncNode
    key: str | None = None

    @property
    def end(self) -> int:
        """Return where the child ends."""
        return self.node.end


@dataclass(frozen=True, slots=True)
class Layout:
    """How a text is written: its line ends, one step of indentation, and whether all of it is one line."""

    newline: str
    unit: str
    one_line: bool


@dataclass(frozen=True, slots=True)
class JsoncDocument:
    """A text and what it says; an edit gives another document, read anew."""

    text: str
    root: JsoncNode

    @staticmethod
    def read(text: str) -> "JsoncDocument":
        """Read a text; raise CannotEdit where it is not JSON."""
        return JsoncDocument(text, parse(text))

    def find(self, place: Sequence[str]) -> JsoncNode | None:
        """Return what stands under a path of keys."""
        node: JsoncNode | None = self.root
        for key in place:
            node = None if node is None else node.member(key)
        return node

    def insert(self, parent: JsoncNode, key: str | None, value: Any) -> "JsoncDocument":
        """Return the document with one more child of a container."""
        return JsoncDocument.read(insert(self.text, parent, key, value, detect_layout(self.text, self.root)))

    def remove(self, parent: JsoncNode, index: int) -> "JsoncDocument":
        """Return the document without one child of a container."""
        return JsoncDocument.read(remove(self.text, parent, index))

    def replace(self, node: JsoncNode, value: Any) -> "JsoncDocument":
        """Return the document with another value in a value's place."""
        return JsoncDocument.read(replace(self.text, node, value, detect_layout(self.text, self.root)))

    def inside(self, parent: JsoncNode) -> str:
        """Return what stands between a container's brackets."""
        return self.text[parent.start + 1 : parent.end - 1]

    def with_inner_text(self, parent: JsoncNode, inside: str) -> "JsoncDocument":
        """Return the document with something else between a container's brackets."""
        return JsoncDocument.read(self.text[: parent.start + 1] + inside + self.text[parent.end - 1 :])


def parse(text: str) -> JsoncNode:
    """Read a text; raise CannotEdit where it is not JSON, comments and trailing commas aside."""
    reader = _JsoncReader(text)
    place = reader.skip(1 if text.startswith("\ufeff") else 0)
    root = reader.value(place, 0)
    if reader.skip(root.end) != len(text):
        raise reader.problem(reader.skip(root.end), "more follows the value")
    return root


def detect_layout(text: str, root: JsoncNode) -> Layout:
    """Return how a text is written."""
    newline = "\r\n" if "\r\n" in text else "\n"
    base = _indentation(text, root.start)
    leads = (_own_line(text, child.start) for child in root.children)
    unit = next((lead[len(base) :] for lead in leads if lead is not None and len(lead) > len(base)), "  ")
    return Layout(newline, unit, bool(root.children) and "\n" not in text[root.start : root.end])


def insert(text: str, parent: JsoncNode, key: str | None, value: Any, layout: Layout) -> str:
    """Return the text with one more child, the last, of an object (under a key) or an array."""
    if not parent.children:
        return _insert_first(text, parent, key, value, layout)
    last = parent.children[-1]
    comma = _comma_after(text, last.end)
    settled = last.end if comma is None else comma + 1
    between, behind = (",", "") if comma is None else ("", ",")
    lead = _own_line(text, last.start)
    if lead is None:
        return f"{text[:settled]}{between} {_render_compact(key, value)}{behind}{text[settled:]}"
    rest = _REST_OF_LINE.match(text, settled)
    place = settled if rest is None else rest.end()
    written = layout.newline + lead + _render(key, value, lead, layout)
    return f"{text[: last.end]}{between}{text[last.end : place]}{written}{behind}{text[place:]}"


def remove(text: str, parent: JsoncNode, index: int) -> str:
    """Return the text without one child, its line and its comma; undoes `insert` exactly."""
    child = parent.children[index]
    before = parent.children[index - 1].end if index else parent.start + 1
    start = _leading_blank(text, before, child.start)
    comma = _comma_after(text, child.end)
    rest = child.end if comma is None else comma + 1
    # A line comment must not swallow what would otherwise move up into its line.
    if _ends_in_line_comment(text, before, start) and not _BREAK.match(text, rest):
        start = child.start
    if comma is not None:
        return text[:start] + text[child.end : comma] + text[rest:]
    if index:
        separator = _comma_after(text, before)
        assert separator is not None
        return text[:separator] + text[separator + 1 : start] + text[rest:]
    return text[:start] + text[rest:]


def replace(text: str, node: JsoncNode, value: Any, layout: Layout) -> str:
    """Return the text with another value in a value's place."""
    one_line = layout.one_line or "\n" not in text[node.start : node.end]
    written = _render_compact(None, value) if one_line else _render(None, value, _indentation(text, node.start), layout)
    return text[: node.start] + written + text[node.end :]


def _insert_first(text: str, parent: JsoncNode, key: str | None, value: Any, layout: Layout) -> str:
    kept = text[parent.start + 1 : parent.end - 1].rstrip()
    if layout.one_line:
        written = kept + _render_compact(key, value)
    else:
        base = _indentation(text, parent.start)
        lead = base + layout.unit
        written = kept + layout.newline + lead + _render(key, value, lead, layout) + layout.newline + base
    return text[: parent.start + 1] + written + text[parent.end - 1 :]


def _render_compact(key: str | None, value: Any) -> str:
    written = json.dumps(value, ensure_ascii=False)
    return written if key is None else f"{json.dumps(key, ensure_ascii=False)}: {written}"


def _render(key: str | None, value: Any, lead: str, layout: Layout) -> str:
    written = json.dumps(value, ensure_ascii=False, indent=layout.unit).replace("\n", layout.newline + lead)
    return written if key is None else f"{json.dumps(key, ensure_ascii=False)}: {written}"


def _indentation(text: str, place: int) -> str:
    line = text.rfind("\n", 0, place) + 1
    return re.compile(r"\ufeff?([ \t]*)").match(text, line)[1]  # type: ignore[index]  # matches anything


def _own_line(text: str, place: int) -> str | None:
    """Return the indentation of what begins its line there, None for what does not."""
    line = text.rfind("\n", 0, place) + 1
    lead = text[line:place]
    return lead if line and not lead.strip(" \t") else None


def _leading_blank(text: str, before: int, place: int) -> int:
    """Return where the blank that leads to a child begins: with its line's break, if it begins a line."""
    blank = place
    while blank > before and text[blank - 1] in " \t":
        blank -= 1
    if blank > before and text[blank - 1] == "\n":
        blank -= 1
        if blank > before and text[blank - 1] == "\r":
            blank -= 1
    return blank


def _ends_in_line_comment(text: str, before: int, place: int) -> bool:
    """Tell whether the comments between two places, where no value is, end in one that a line break must end."""
    return any(found.end() == place and found[0].startswith("//") for found in _COMMENT.finditer(text, before, place))


def _comma_after(text: str, place: int) -> int | None:
    skipped = _SKIPPED.match(text, place)
    found = place if skipped is None else skipped.end()
    return found if text[found : found + 1] == "," else None


class _JsoncReader:
    """Reads values by recursive descent."""

    def __init__(self, text: str) -> None:
        self.text = text

    def problem(self, place: int, what: str) -> CannotEdit:
        line = self.text.count("\n", 0, place) + 1
        return CannotEdit(f"line {line} is not valid JSON: {what}")

    def skip(self, place: int) -> int:
        found = _SKIPPED.match(self.text, place)
        return place if found is None else found.end()

    def value(self, place: int, depth: int) -> JsoncNode:
        if depth > _DEEPEST:
            raise self.problem(place, "it is nested too deeply")
        sign = self.text[place : place + 1]
        if sign in ("{", "["):
            return self._container(place, depth)
        if sign == '"':
            text, end = self._string(place)
            return JsoncNode("scalar", place, end, text)
        found = _SCALAR.match(self.text, place)
        if found is None:
            raise self.problem(place, "a value is missing")
        try:
            return JsoncNode("scalar", place, found.end(), json.loads(found[0]))
        except ValueError as error:
            raise self.problem(place, "the number is too long") from error

    def _container(self, start: int, depth: int) -> JsoncNode:
        is_object = self.text[start] == "{"
        close = "}" if is_object else "]"
        children: list[Child] = []
        place = self.skip(start + 1)
        while not self.text.startswith(close, place):
            child = self._child(place, depth, is_object=is_object)
            children.append(child)
            place = self.skip(child.end)
            if self.text.startswith(",", place):
                place = self.skip(place + 1)
            elif not self.text.startswith(close, place):
                raise self.problem(place, f"a comma or {close} is missing")
        found = tuple(children)
        if is_object:
            return JsoncNode("object", start, place + 1, {str(c.key): c.node.value for c in found}, found)
        return JsoncNode("array", start, place + 1, [c.node.value for c in found], found)

    def _child(self, place: int, depth: int, *, is_object: bool) -> Child:
        if not is_object:
            return Child(place, self.value(place, depth + 1))
        key, end = self._string(place)
        colon = self.skip(end)
        if not self.text.startswith(":", colon):
            raise self.problem(colon, "a colon is missing")
        return Child(place, self.value(self.skip(colon + 1), depth + 1), key)

    def _string(self, place: int) -> tuple[str, int]:
        found = _STRING.match(self.text, place)
        if found is None:
            raise self.problem(place, "a string is missing or does not end")
        try:
            return str(json.loads(found[0])), found.end()
        except ValueError as error:
            raise self.problem(place, "a string has an unknown escape") from error
