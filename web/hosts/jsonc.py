"""The values of a JSON text, with or without comments, and edits of it that keep every other byte.

The standard library parses the values, with blanks for comments and trailing commas. New text is indented as the file.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from web.hosts.entries import CannotEdit

_STRING = r'"(?:[^"\\]|\\.)*"'
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_TEXT_OR_COMMENT = re.compile(f"{_STRING}|{_COMMENT.pattern}", re.DOTALL)
# A comma after nothing is not a trailing comma.
_TEXT_OR_TRAILING_COMMA = re.compile(_STRING + r"|[\[{]\s*,|,(?=\s*[\]}])", re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")
_SKIPPED = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_REST_OF_LINE = re.compile(r"[ \t]*(?:/\*(?:(?!\*/)[^\r\n])*\*/[ \t]*)*(?://[^\r\n]*)?(?=\r?\n)")
_BREAK = re.compile(r"[ \t]*\r?\n")
_DEEPEST = 200


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


@dataclass(frozen=True)
class JsoncNode:
    """A value and its span in the text; `plain` is the text with blanks instead of comments and trailing commas."""

    plain: str
    start: int
    end: int
    value: Any

    @cached_property
    def children(self) -> "tuple[Child, ...]":
        """Return the members of an object or the items of an array, in order."""
        members: list[Child] = []
        position = _skip_blank(self.plain, self.start + 1)
        while isinstance(self.value, dict | list) and position < self.end - 1:
            key, begin = None, position
            if isinstance(self.value, dict):
                key, position = _DECODER.raw_decode(self.plain, position)
                position = _skip_blank(self.plain, _skip_blank(self.plain, position) + 1)
            value, end = _DECODER.raw_decode(self.plain, position)
            members.append(Child(begin, JsoncNode(self.plain, position, end, value), key))
            position = _skip_blank(self.plain, end)
            position = _skip_blank(self.plain, position + self.plain.startswith(",", position))
        return tuple(members)

    def member(self, key: str) -> "JsoncNode | None":
        """Return the value of a key; if the key is repeated, the last value."""
        return next((child.node for child in reversed(self.children) if child.key == key), None)


@dataclass(frozen=True, slots=True)
class Child:
    """A member of an object (starting at its key) or an item of an array."""

    start: int
    node: JsoncNode
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a text: line ending, indentation, and whether everything is on one line."""

    newline: str
    unit: str
    one_line: bool

    def render(self, key: str | None, value: Any, lead: str | None) -> str:
        """Return a child on one line or, after the indentation of its first line, on several lines."""
        written = json.dumps(value, ensure_ascii=False, indent=None if lead is None else self.unit)
        written = written.replace("\n", f"{self.newline}{lead}")
        return written if key is None else f"{json.dumps(key, ensure_ascii=False)}: {written}"


@dataclass(frozen=True, slots=True)
class JsoncDocument:
    """A text and its parsed values; an edit returns another document, parsed again."""

    text: str
    root: JsoncNode

    @staticmethod
    def read(text: str) -> "JsoncDocument":
        """Parse a text; raise CannotEdit if it is not JSON, apart from comments and trailing commas."""
        plain = " " + text[1:] if text.startswith("\ufeff") else text
        # Line breaks stay, so that line numbers stay the same.
        plain = _TEXT_OR_COMMENT.sub(
            lambda match: match[0] if match[0].startswith('"') else re.sub(r"[^\n]", " ", match[0]), plain
        )
        plain = _TEXT_OR_TRAILING_COMMA.sub(lambda match: " " if match[0] == "," else match[0], plain)
        brackets = re.findall(r"[\[\]{}]", re.sub(_STRING, "", plain, flags=re.DOTALL))
        if max(accumulate(1 if sign in "[{" else -1 for sign in brackets), default=0) > _DEEPEST:
            raise CannotEdit("it is not valid JSON: it is nested too deeply")
        try:
            value = _DECODER.decode(plain)
        except json.JSONDecodeError as error:
            raise CannotEdit(f"line {error.lineno} is not valid JSON: {error.msg}") from error
        except ValueError as error:
            raise CannotEdit("it is not valid JSON: it contains NaN, Infinity or a number that is too long") from error
        return JsoncDocument(text, JsoncNode(plain, _skip_blank(plain, 0), len(plain.rstrip()), value))

    def find(self, path: Sequence[str]) -> JsoncNode | None:
        """Return the value at a path of keys, or None."""
        node: JsoncNode | None = self.root
        for key in path:
            node = None if node is None else node.member(key)
        return node

    def inside(self, parent: JsoncNode) -> str:
        """Return the text between a container's brackets."""
        return self.text[parent.start + 1 : parent.end - 1]

    def with_inner_text(self, parent: JsoncNode, inside: str) -> "JsoncDocument":
        """Return the document with other text between a container's brackets."""
        return self._with(parent.start + 1, parent.end - 1, inside)

    def insert(self, parent: JsoncNode, key: str | None, value: Any) -> "JsoncDocument":
        """Return the document with another child at the end of an object (under a key) or an array."""
        if not parent.children:
            return self.with_inner_text(parent, self._render_only_child(parent, key, value))
        text, layout, last = self.text, self._detect_layout(), parent.children[-1]
        comma = _comma_after(text, last.node.end)
        settled = last.node.end if comma is None else comma + 1
        between, behind = (",", "") if comma is None else ("", ",")
        lead = _own_line(text, last.start)
        written = layout.render(key, value, lead)
        if lead is None:
            return self._with(settled, settled, f"{between} {written}{behind}")
        rest = _REST_OF_LINE.match(text, settled)
        line_end = settled if rest is None else rest.end()
        comment = text[last.node.end : line_end]
        return self._with(last.node.end, line_end, f"{between}{comment}{layout.newline}{lead}{written}{behind}")

    def remove(self, parent: JsoncNode, index: int) -> "JsoncDocument":
        """Return the document without a child, its line and its comma; undoes `insert` exactly."""
        text, child = self.text, parent.children[index]
        before = parent.children[index - 1].node.end if index else parent.start + 1
        start = _leading_blank(text, before, child.start)
        comma = _comma_after(text, child.node.end)
        rest = child.node.end if comma is None else comma + 1
        # The next text must not move into the line of a line comment.
        if _ends_in_line_comment(text, before, start) and not _BREAK.match(text, rest):
            start = child.start
        if comma is not None:
            return self._with(start, rest, text[child.node.end : comma])
        separator = _comma_after(text, before) if index else None
        if separator is not None:
            return self._with(separator, rest, text[separator + 1 : start])
        return self._with(start, rest, "")

    def replace(self, node: JsoncNode, value: Any) -> "JsoncDocument":
        """Return the document with another value."""
        layout = self._detect_layout()
        one_line = layout.one_line or "\n" not in self.text[node.start : node.end]
        lead = None if one_line else _indentation(self.text, node.start)
        return self._with(node.start, node.end, layout.render(None, value, lead))

    def _with(self, start: int, end: int, written: str) -> "JsoncDocument":
        return JsoncDocument.read(self.text[:start] + written + self.text[end:])

    def _detect_layout(self) -> Layout:
        text, root = self.text, self.root
        base = _indentation(text, root.start)
        leads = (_own_line(text, child.start) for child in root.children)
        unit = next((lead[len(base) :] for lead in leads if lead is not None and len(lead) > len(base)), "  ")
        one_line = bool(root.children) and "\n" not in text[root.start : root.end]
        return Layout("\r\n" if "\r\n" in text else "\n", unit, one_line)

    def _render_only_child(self, parent: JsoncNode, key: str | None, value: Any) -> str:
        layout, before = self._detect_layout(), self.inside(parent).rstrip()
        if layout.one_line:
            return before + layout.render(key, value, None)
        base = _indentation(self.text, parent.start)
        lead = base + layout.unit
        return before + layout.newline + lead + layout.render(key, value, lead) + layout.newline + base


def _skip_blank(plain: str, position: int) -> int:
    match = _SPACE.match(plain, position)
    return position if match is None else match.end()


def _indentation(text: str, position: int) -> str:
    line = text.rfind("\n", 0, position) + 1
    return re.compile(r"\ufeff?([ \t]*)").match(text, line)[1]  # type: ignore[index]  # matches anything


def _own_line(text: str, position: int) -> str | None:
    """Return the indentation before a position, or None if other text precedes it in its line."""
    line = text.rfind("\n", 0, position) + 1
    lead = text[line:position]
    return lead if line and not lead.strip(" \t") else None


def _leading_blank(text: str, before: int, position: int) -> int:
    """Return where the blank before a child starts, including the line break if the child starts a line."""
    match = re.search(r"(?:\r?\n)?[ \t]*\Z", text[before:position])
    return position if match is None else before + match.start()


def _ends_in_line_comment(text: str, before: int, position: int) -> bool:
    """Return whether the text between two positions (no values) ends in a line comment, which needs a line break."""
    return any(
        match.end() == position and match[0].startswith("//") for match in _COMMENT.finditer(text, before, position)
    )


def _comma_after(text: str, position: int) -> int | None:
    skipped = _SKIPPED.match(text, position)
    next_position = position if skipped is None else skipped.end()
    return next_position if text[next_position : next_position + 1] == "," else None
