"""Outline a source file: its purpose, its symbols, its imports."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import takewhile
from typing import Final

from pipeline.features.ingest.project.grammars import GRAMMARS, Grammar, Node, match_queries, parse
from pipeline.features.ingest.project.prose import find_purpose, one_line, purpose, strip_markers, summary
from pipeline.text.normalize import shorten

LONGEST_SIGNATURE: Final = 120
LONGEST_VALUE: Final = 60
LONGEST_ATTRIBUTE: Final = 80
SHOWN_PARAMETERS: Final = 8
# Of nested definitions.
MAX_DEPTH: Final = 6

_INNER_DOC: Final = (b"//!", b"/*!")
_FILE_TAGS: Final = ("@file", "@module", "@packageDocumentation", "@overview")
_QUOTES: Final = re.compile(r"^[a-zA-Z]*(\"\"\"|'''|\"|'|`)(.*)\1$", re.DOTALL)
# They describe how a thing is built or compiled, not its purpose.
_PLAIN_ATTRIBUTES: Final = frozenset(
    """
    staticmethod classmethod override abstractmethod final wraps
    Override SuppressWarnings Nullable NonNull NotNull SafeVarargs Inject
    """.split()  # noqa: SIM905 - readable as words
)


class SymbolRole(StrEnum):
    """The role in which a symbol is listed."""

    DEFINITION = "definition"
    CONSTANT = "constant"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named part of a file: its signature without the body, its first line (1-based), its description.

    `name` is dotted for a member; `fields` are the names of its fields.
    """

    name: str
    signature: str
    line: int
    doc: str = ""
    public: bool = True
    role: SymbolRole = SymbolRole.DEFINITION
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Import:
    """A module as written in a file, and the imported name, which may also be a module."""

    module: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Outline:
    """A file's purpose in a line or "", its symbols in order, its imports in order."""

    purpose: str
    symbols: tuple[Symbol, ...]
    imports: tuple[Import, ...]


def outline_of(data: bytes, grammar: str) -> Outline:
    """Return the outline of a source file as far as it can be parsed; raise SkippedFile if that takes too long."""
    root = parse(data, grammar)
    captures = _Captures(data, match_queries(root, grammar))
    outliner = _Outliner(GRAMMARS[grammar], captures)
    symbols = tuple(outliner.read_symbols())
    return Outline(_purpose(root, captures, outliner.described), symbols, captures.imports())


@dataclass(frozen=True, slots=True)
class _Tag:
    """A definition that a query matched."""

    kind: str
    node: Node
    name: Node


class _Captures:
    """The matches of the queries in a file, by purpose; a node is identified by its first byte."""

    def __init__(self, data: bytes, matches: Iterable[dict[str, Node]]) -> None:
        self.data = data
        self.tags: dict[int, _Tag] = {}
        self._imports: dict[int, Import] = {}
        self.docs: dict[int, str] = {}
        # Start of the declaration that contains the definition.
        self.outer: dict[int, int] = {}
        self._nodes: dict[str, dict[int, Node]] = {}
        for match in matches:
            self._add(match)
        self.bodies = sorted(node.start_byte for node in self.list_captured("body"))
        self.attributes = sorted(self.list_captured("attribute"), key=_start)
        self.exported = {self.text(node) for node in self.list_captured("export")}
        # Comments and attributes by their end: some grammars include the line's end in a comment.
        above = (*self.list_captured("comment"), *self.attributes)
        self.above = {
            node.start_byte + len(self.data[node.start_byte : node.end_byte].rstrip()): node for node in above
        }

    def _add(self, match: dict[str, Node]) -> None:
        for capture, node in match.items():
            self._nodes.setdefault(capture, {}).setdefault(node.start_byte, node)
            _, is_definition, kind = capture.partition("definition.")
            if is_definition and "name" in match:
                self.tags.setdefault(match["name"].start_byte, _Tag(kind, node, match["name"]))
        if "import" in match:
            last = match.get("import.name", match["import"])
            self._imports[last.start_byte] = Import(self.text(match["import"]), self.text(match.get("import.name")))
        if "documented" in match:
            self.docs[match["documented"].start_byte] = unquote(self.text(match["doc"]))
        if "inner" in match:
            self.outer[match["inner"].start_byte] = match["outer"].start_byte

    def imports(self) -> tuple[Import, ...]:
        """Return the imports in the order of the file."""
        return tuple(self._imports[start] for start in sorted(self._imports))

    def text(self, node: Node | None) -> str:
        """Return the text of a node, "" for none."""
        return "" if node is None else self.between(node.start_byte, node.end_byte)

    def between(self, start: int, end: int) -> str:
        """Return the text between two positions."""
        return self.data[start:end].decode("utf-8", "replace")

    def list_captured(self, capture: str) -> list[Node]:
        """Return the nodes with a capture name."""
        return list(self._nodes.get(capture, {}).values())

    def has(self, capture: str, node: Node) -> bool:
        """Tell whether a node that starts there has this capture name."""
        return node.start_byte in self._nodes.get(capture, ())


@dataclass(slots=True)
class _Scope:
    """The container of definitions: its end, the prefix of its members' names, whether they are private."""

    end: int
    prefix: str = ""
    private: bool = False
    is_local: bool = False
    depth: int = 0
    fields: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Outliner:
    """Reads the definitions of one file, outermost first."""

    grammar: Grammar
    captures: _Captures
    # Start of the comments that describe a definition.
    described: set[int] = field(default_factory=set)

    def read_symbols(self) -> list[Symbol]:
        """Return the definitions in the order of the file."""
        scopes = [_Scope(len(self.captures.data))]
        symbols: list[tuple[Symbol, _Scope]] = []
        for node, tag in self._in_order():
            while len(scopes) > 1 and scopes[-1].end <= node.start_byte:
                scopes.pop()
            around = scopes[-1]
            if around.is_local or around.depth > MAX_DEPTH:
                continue
            if tag is not None:
                symbol, inside = self._read(tag, around)
                scopes.append(inside)
                symbols += [] if symbol is None else [(symbol, inside)]
            elif not self.captures.has("field", node):
                scopes.append(_Scope(node.end_byte, is_local=True))
            elif not self._is_private(node, self.captures.text(node)):
                around.fields[_field(self.captures.text(node))] = None
        return [replace(symbol, fields=tuple(scope.fields)) if scope.fields else symbol for symbol, scope in symbols]

    def _in_order(self) -> list[tuple[Node, _Tag | None]]:
        """Return definitions, fields, and private parts of functions, outermost first."""
        captures = self.captures
        tags = [tag for tag in captures.tags.values() if not captures.has("ignore", tag.name)]
        local = [node for node in captures.list_captured("local") if not captures.has("open", node)]
        fields = [node for node in captures.list_captured("field") if node.start_byte not in captures.tags]
        nodes = [*((tag.node, tag) for tag in tags), *((node, None) for node in (*local, *fields))]
        return sorted(nodes, key=lambda pair: (pair[0].start_byte, -pair[0].end_byte, pair[1] is not None))

    def _read(self, tag: _Tag, around: _Scope) -> tuple[Symbol | None, _Scope]:
        """Return the symbol of a definition, if it is listed, and the container of its members."""
        text, owner = self.captures.text(tag.name), self.grammar.owner.match(self._before(tag))
        own = one_line(unquote(text)) if tag.kind == "test" else self.grammar.rename.sub("", text)
        name = f"{around.prefix}{owner[1]}{self.grammar.separator}{own}" if owner else f"{around.prefix}{own}"
        private = around.private or self._is_private(tag.name, own) or not self._is_exported(name)
        private = private or (owner is not None and self.grammar.private.match(owner[1]) is not None)
        prefix = around.prefix if tag.kind == "test" else f"{name}{self.grammar.separator}"
        symbol = self._symbol(tag, name, private=private) if own else None
        return symbol, _Scope(tag.node.end_byte, prefix, private, depth=around.depth + 1)

    def _is_private(self, node: Node, own: str) -> bool:
        unsaid = self.grammar.private_unless_said and not self.captures.has("public", node)
        is_field = self.captures.has("field", node)
        hidden = self.captures.has("hidden", node) or self.grammar.private.match(own.lstrip("*")) is not None
        return hidden or (unsaid and not is_field)

    def _is_exported(self, name: str) -> bool:
        # A script or a test exports nothing: its top-level definitions are listed.
        return not self.captures.exported or name.partition(".")[0] in self.captures.exported

    def _symbol(self, tag: _Tag, name: str, *, private: bool) -> Symbol | None:
        line = tag.name.start_point.row + 1
        comment, attributes = self._above(tag)
        if tag.kind == "module":
            return None
        if tag.kind == "constant":
            if self.grammar.constant.match(self.captures.text(tag.name)) is None:
                return None
            return Symbol(name, self._constant(tag, name), line, "", not private, SymbolRole.CONSTANT)
        if tag.kind == "test" or any(map(self.grammar.test.match, (*attributes, self.captures.text(tag.name)))):
            return Symbol(name, name, line, role=SymbolRole.TEST)
        doc = self.captures.docs.get(tag.node.start_byte, "") if self.grammar.docstrings else strip_markers(comment)
        return Symbol(name, f"{decoration(attributes)}{self._head(tag, name)}", line, summary(doc), not private)

    def _above(self, tag: _Tag) -> tuple[str, list[str]]:
        """Return the comment directly above a definition, and the attributes before its name."""
        captures, start = self.captures, tag.node.start_byte
        comments: list[str] = []
        while True:
            while (outer := captures.outer.get(start, start)) < start:
                start = outer
            above = _last_before(captures.data, start)
            node = captures.above.get(above)
            if node is None or captures.data.count(b"\n", above, start) > 1 or self._is_apart(node):
                break
            start = node.start_byte
            if captures.has("comment", node):
                comments.append(captures.text(node).rstrip())
                self.described.add(start)
        indices = (bisect_left(captures.attributes, offset, key=_start) for offset in (start, tag.name.start_byte))
        return "\n".join(reversed(comments)), [captures.text(node) for node in captures.attributes[slice(*indices)]]

    def _is_apart(self, comment: Node) -> bool:
        """Tell whether a comment follows code or describes the file."""
        data, start = self.captures.data, comment.start_byte
        behind = bool(data[data.rfind(b"\n", 0, start) + 1 : start].strip())
        return self.captures.has("comment", comment) and (behind or data.startswith(_INNER_DOC, start))

    def _before(self, tag: _Tag) -> str:
        """Return the text before a definition's name, after its attributes."""
        attributes, name = self.captures.attributes, tag.name.start_byte
        last = bisect_left(attributes, name, key=_start) - 1
        start = max(tag.node.start_byte, attributes[last].end_byte) if last >= 0 else tag.node.start_byte
        return self.captures.between(start, name)

    def _constant(self, tag: _Tag, name: str) -> str:
        value = self.captures.between(tag.name.end_byte, tag.node.end_byte)
        written = _join(name, one_line(value).rstrip(" ;"))
        return written if len(written) <= LONGEST_VALUE + len(name) else name

    def _head(self, tag: _Tag, name: str) -> str:
        """Write the head of a definition: complete if it is short, else with the names of the parameters only."""
        start, bodies = tag.name.end_byte, self.captures.bodies
        index = bisect_left(bodies, start)
        end = min(bodies[index], tag.node.end_byte) if index < len(bodies) else tag.node.end_byte
        full = self._tidy(tag, name, self.captures.between(start, end))
        parameters = _parameters(tag.node)
        if len(full) > LONGEST_SIGNATURE and parameters is not None and start <= parameters.start_byte < end:
            names = [one_line(self.captures.text(_leaf(node))) for node in parameters.named_children]
            listed = ", ".join(names[:SHOWN_PARAMETERS]) + (", …" if len(names) > SHOWN_PARAMETERS else "")
            left, right = (start, parameters.start_byte), (parameters.end_byte, end)
            full = self._tidy(tag, name, f"{self.captures.between(*left)}({listed}){self.captures.between(*right)}")
        return shorten(full, LONGEST_SIGNATURE)

    def _tidy(self, tag: _Tag, name: str, behind: str) -> str:
        before = one_line(self.grammar.noise.sub("", self._before(tag)))
        # In a group of types only the group gives their type.
        before = before or ("type" if tag.kind == "type" else "")
        # The opening sign remains before an omitted body.
        text = f"{before} {_join(name, one_line(behind).rstrip(' ;{(='))}".strip()
        for pattern, replacement in self.grammar.tidy:
            text = pattern.sub(replacement, text)
        return text


def decoration(attributes: Iterable[str]) -> str:
    """Write the attributes of a symbol before it: complete if they name a route, a command or a case."""
    shown = ""
    for text in map(one_line, attributes):
        name = text.partition("(")[0]
        if text.startswith("@") and name.lstrip("@").rpartition(".")[2] not in _PLAIN_ATTRIBUTES:
            whole = ('"' in text or "'" in text) and len(text) <= LONGEST_ATTRIBUTE
            shown += f"{text if whole else name} "
    return shown


def unquote(text: str) -> str:
    """Return the content of a string."""
    quoted = _QUOTES.match(text)
    return quoted[2] if quoted else text


def _join(name: str, behind: str) -> str:
    return f"{name}{behind}" if behind[:1] in ("(", "[", "<", ":", "!", ",") else f"{name} {behind}".rstrip()


def _field(text: str) -> str:
    # An embedded field in Go has the name of its type.
    return text.lstrip("*").rpartition(".")[2].partition("[")[0]


def _start(node: Node) -> int:
    return node.start_byte


def _last_before(data: bytes, offset: int) -> int:
    """Return the end of the last node before a position."""
    while offset and data[offset - 1 : offset].isspace():
        offset -= 1
    return offset


def _parameters(node: Node) -> Node | None:
    """Return the parameters of a function, or of one that is named by its assignment."""
    assigned = (node.child_by_field_name(name) for name in ("value", "right"))
    holders = [node, *(holder for holder in assigned if holder is not None)]
    return next(
        (parameters for holder in holders if (parameters := holder.child_by_field_name("parameters")) is not None), None
    )


def _leaf(parameter: Node) -> Node:
    """Return the name of a parameter, as far as the grammar provides it."""
    fields = (parameter.child_by_field_name(name) for name in ("name", "pattern", "left"))
    return next((field for field in fields if field is not None), next(iter(parameter.named_children), parameter))


def _purpose(root: Node, captures: _Captures, described: set[int]) -> str:
    """Return a file's description: its first string, or a leading comment that describes nothing else."""
    stated = (purpose(unquote(captures.text(node))) for node in captures.list_captured("purpose"))
    return next(filter(None, stated), "") or find_purpose(_leading_comments(root, captures, described))


def _leading_comments(root: Node, captures: _Captures, described: set[int]) -> Iterator[str]:
    """Yield the leading comments of a file; comments on consecutive lines are joined."""
    nodes = (node for node in root.children if not _is_directive(node))
    leading = list(takewhile(lambda node: captures.has("comment", node), nodes))
    inner = [node for node in leading if captures.data.startswith(_INNER_DOC, node.start_byte)]
    blocks: list[list[Node]] = []
    for node in inner or leading:
        if (
            blocks
            and not captures.data.count(b"\n", _last_before(captures.data, blocks[-1][-1].end_byte), node.start_byte)
            > 1
        ):
            blocks[-1].append(node)
        else:
            blocks.append([node])
    for block in blocks:
        text = "\n".join(captures.text(node).rstrip() for node in block)
        if block[-1].start_byte not in described or any(tag in text for tag in _FILE_TAGS):
            yield text


def _is_directive(node: Node) -> bool:
    """Tell whether a statement is only a string, such as "use strict"."""
    return node.type == "expression_statement" and [child.type for child in node.named_children] == ["string"]
