"""The outline of a JavaScript or TypeScript file."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Final

from pipeline.ingest.project.comments import bare, purpose_of_comments, summary
from pipeline.ingest.project.javascript_shapes import (
    CLASSES,
    COMMENTS,
    FUNCTIONS,
    PROPERTY,
    Member,
    class_members,
    class_signature,
    decorators_of,
    fields_of,
    function_signature,
    literal,
)
from pipeline.ingest.project.outline import (
    LONGEST_ATTRIBUTE,
    Import,
    Outline,
    Role,
    Symbol,
    one_line,
    shortened,
    valued,
)
from pipeline.ingest.project.syntax import (
    ERROR,
    MAX_DEPTH,
    Code,
    Documented,
    Node,
    documented,
    leading_comments,
    line_of,
)

_IMPORTS: Final = frozenset({"import_statement", "package_statement"})
_FILE_TAGS: Final = ("@file", "@module", "@packageDocumentation", "@overview")
_TESTS: Final = frozenset({"describe", "context", "suite", "it", "test"})
_PROTOTYPE: Final = ".prototype."


@dataclass(slots=True)
class _Found:
    """What was met so far. What is exported is known only at the end, by the names at the top of the file."""

    members: list[Member] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    exported: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a statement stands: in what (dotted, or ""), whether it is exported there, how deep it may hold more."""

    code: Code
    found: _Found
    owner: str = ""
    exported: bool = False
    depth: int = MAX_DEPTH

    def add(self, member: Member) -> None:
        """Keep something that is declared here."""
        self.found.members.append(replace(member, hidden=member.hidden or (bool(self.owner) and not self.exported)))
        if self.exported and not self.owner:
            self.found.exported.add(member.symbol.name.partition(".")[0])


def outline_javascript(code: Code) -> Outline:
    """Return what a JavaScript or TypeScript file holds."""
    found = _Found()
    _read_all(_Place(code, found), code.root.children)
    # A script or a test exports nothing: what stands at its top is what it has.
    exported = found.exported or {member.symbol.name.partition(".")[0] for member in found.members}
    symbols = (
        replace(member.symbol, public=not member.hidden and member.symbol.name.partition(".")[0] in exported)
        for member in found.members
    )
    # A value that stays within the file tells little.
    told = [one for one in symbols if one.public or one.role is not Role.CONSTANT]
    return Outline(_purpose(code), tuple(_without_overloads(told)), tuple(found.imports))


def _without_overloads(symbols: list[Symbol]) -> Iterator[Symbol]:
    """Yield symbols but those that another of the same name follows and that say nothing of themselves."""
    for symbol, following in zip_longest(symbols, symbols[1:]):
        if symbol.doc or following is None or following.name != symbol.name or symbol.role is not Role.DEFINITION:
            yield symbol


def _purpose(code: Code) -> str:
    nodes = [node for node in code.root.children if not _is_directive(node)]
    comments = list(leading_comments(code, nodes, COMMENTS))
    first = next(documented(code, nodes, COMMENTS), None)
    if first is not None and first.comment and first.node.type not in _IMPORTS and first.comment.endswith(comments[-1]):
        # What stands directly above a declaration tells of that, unless it says otherwise.
        comments = [one for one in comments if one is not comments[-1] or any(tag in one for tag in _FILE_TAGS)]
    return purpose_of_comments(comments)


def _is_directive(node: Node) -> bool:
    """Tell whether a statement is a mere string, such as "use strict"."""
    return node.type == "expression_statement" and [child.type for child in node.named_children] == ["string"]


def _read_all(place: _Place, nodes: Iterable[Node]) -> None:
    for statement in documented(place.code, nodes, COMMENTS):
        _read(place, statement)


def _read(place: _Place, statement: Documented) -> None:
    kind = statement.node.type
    if kind in FUNCTIONS:
        _function(place, statement, statement.node, place.code.field(statement.node, "name"))
    elif kind in CLASSES:
        _class(place, statement, statement.node, place.code.field(statement.node, "name"))
    elif place.depth and (reader := _READERS.get(kind)) is not None:
        reader(replace(place, depth=place.depth - 1), statement)


def _function(place: _Place, statement: Documented, node: Node, own: str) -> None:
    name = f"{place.owner}{own or 'default'}"
    symbol = Symbol(name, function_signature(place.code, node, name), line_of(node), summary(bare(statement.comment)))
    place.add(Member(symbol))


def _class(place: _Place, statement: Documented, node: Node, own: str) -> None:
    name = f"{place.owner}{own or 'default'}"
    decorators = decorators_of(place.code, [*statement.attributes, *node.children])
    written = f"{decorators}{class_signature(place.code, node, name)}"
    fields = fields_of(place.code, node.child_by_field_name("body"))
    place.add(Member(Symbol(name, written, line_of(node), summary(bare(statement.comment)), fields=fields)))
    for member in class_members(place.code, node, f"{name}."):
        place.add(member)


def _type(place: _Place, statement: Documented) -> None:
    code, node = place.code, statement.node
    name, keyword = f"{place.owner}{code.field(node, 'name')}", node.type.partition("_")[0]
    value = node.child_by_field_name("value")
    holds = value if value is not None and value.type == "object_type" else node.child_by_field_name("body")
    heritage = next((code.text(one) for one in node.children if one.type == "extends_type_clause"), "")
    written = valued(f"{keyword} {name}", code.text(value) if holds is not value else "")
    signature = f"{written} {shortened(one_line(heritage), LONGEST_ATTRIBUTE)}".strip()
    doc = summary(bare(statement.comment))
    place.add(Member(Symbol(name, signature, line_of(node), doc, fields=fields_of(code, holds))))


def _values(place: _Place, statement: Documented) -> None:
    for node in statement.node.named_children:
        if node.type == "variable_declarator":
            _value(place, statement, node, place.code.field(node, "name"), node.child_by_field_name("value"))


def _value(place: _Place, statement: Documented, node: Node, own: str, value: Node | None) -> None:
    """Read something that gets a name by being assigned."""
    code = place.code
    if value is not None and (module := _required(code, value)):
        place.found.imports.append(Import(module))
    elif value is not None and value.type in FUNCTIONS:
        _function(place, statement, value, own)
    elif value is not None and value.type in CLASSES:
        _class(place, statement, value, own)
    elif own.isidentifier() or own.startswith("$"):
        name = f"{place.owner}{own}"
        if value is not None and value.type == "call_expression" and _wraps_a_function(value):
            written = f"{name} = {shortened(one_line(place.code.field(value, 'function')), LONGEST_ATTRIBUTE)}(…)"
            place.add(Member(Symbol(name, written, line_of(node), summary(bare(statement.comment)))))
        else:
            place.add(Member(Symbol(name, valued(name, code.text(value)), line_of(node), role=Role.CONSTANT)))


def _wraps_a_function(call: Node) -> bool:
    given = call.child_by_field_name("arguments")
    return given is not None and any(one.type in FUNCTIONS for one in given.named_children)


def _export(place: _Place, statement: Documented) -> None:
    code, node = place.code, statement.node
    if source := literal(code, node.child_by_field_name("source")):
        place.found.imports.append(Import(source))
        return
    decorators = tuple(child for child in node.children if child.type == "decorator")
    for child in node.named_children:
        if child.type == "export_clause":
            place.found.exported.update(code.field(one, "name") for one in child.named_children)
        elif child.type == "identifier":
            place.found.exported.add(code.text(child))
        elif child.type != "decorator":
            _read(replace(place, exported=True), Documented(child, statement.comment, decorators))


def _import(place: _Place, statement: Documented) -> None:
    nodes = [statement.node, *statement.node.named_children]
    sources = (literal(place.code, node.child_by_field_name("source")) for node in nodes)
    place.found.imports.extend(Import(source) for source in sources if source)


def _declared(place: _Place, statement: Documented) -> None:
    for child in statement.node.named_children:
        _read(place, Documented(child, statement.comment))


def _namespace(place: _Place, statement: Documented) -> None:
    name = statement.node.child_by_field_name("name")
    body = statement.node.child_by_field_name("body")
    if name is not None and body is not None:
        # The name of a foreign module is no name within this file.
        owner = place.owner if name.type == "string" else f"{place.owner}{place.code.text(name)}."
        if place.exported and not place.owner:
            place.found.exported.add(owner.partition(".")[0])
        _read_all(replace(place, owner=owner, exported=not owner), body.children)


def _expression(place: _Place, statement: Documented) -> None:
    for node in statement.node.named_children[:1]:
        if node.type == "internal_module":
            _namespace(place, Documented(node, statement.comment))
        elif node.type == "assignment_expression":
            _assignment(place, statement, node)
        elif node.type == "call_expression":
            _call(place, node)


def _assignment(place: _Place, statement: Documented, node: Node) -> None:
    code, value = place.code, node.child_by_field_name("right")
    left = code.field(node, "left").replace(_PROTOTYPE, ".")
    outside = replace(place, exported=True)
    if value is None:
        return
    if left in ("module.exports", "exports"):
        _common_export(outside, statement, value)
    elif left.startswith(("exports.", "module.exports.")):
        own = left.rpartition(".")[2]
        place.found.exported.add(code.text(value) if value.type == "identifier" else own)
        if value.type != "identifier":
            _value(outside, statement, node, own, value)
    elif value.type in FUNCTIONS:
        _function(place, statement, value, left)


def _common_export(place: _Place, statement: Documented, value: Node) -> None:
    """Read what a CommonJS module hands out."""
    code = place.code
    if value.type == "identifier":
        place.found.exported.add(code.text(value))
    elif value.type == "object":
        for entry in documented(code, value.children, COMMENTS):
            inner = entry.node.child_by_field_name("value")
            if entry.node.type == "method_definition":
                _function(place, entry, entry.node, code.field(entry.node, "name"))
            elif inner is not None and inner.type in FUNCTIONS | CLASSES:
                _value(place, entry, inner, code.field(entry.node, "key"), inner)
            elif entry.node.type in PROPERTY:
                place.found.exported.add(code.text(entry.node if inner is None else inner))
    else:
        _value(place, statement, value, code.field(value, "name") or "default", value)


def _call(place: _Place, node: Node) -> None:
    code, called = place.code, node.child_by_field_name("function")
    given = node.child_by_field_name("arguments")
    if called is None or given is None:
        return
    if module := _required(code, node):
        place.found.imports.append(Import(module))
    elif code.text(called).partition(".")[0] in _TESTS and given.named_children:
        _test(place, node, given.named_children)
    elif called.type == "parenthesized_expression":
        # A function that is called at once is only a wall around the file.
        for inner in called.named_children:
            body = inner.child_by_field_name("body")
            _read_all(replace(place, depth=place.depth - 1), [] if body is None else body.children)


def _test(place: _Place, node: Node, given: list[Node]) -> None:
    title = literal(place.code, given[0])
    body = given[-1].child_by_field_name("body")
    holds_more = body is not None and place.code.field(node, "function").partition(".")[0] not in ("it", "test")
    if title and not holds_more:
        place.add(Member(Symbol(f"{place.owner}{title}", title, line_of(node), role=Role.TEST)))
    if body is not None and holds_more and place.depth > 0:
        before = len(place.found.members)
        _read_all(replace(place, depth=place.depth - 1), body.children)
        if title and len(place.found.members) > before:
            first = Symbol(title, title, line_of(node), role=Role.TEST)
            place.found.members.insert(before, Member(first))


def _required(code: Code, node: Node) -> str:
    """Return the module that a call of `require` names, "" for anything else."""
    given = node.child_by_field_name("arguments")
    if node.type != "call_expression" or code.field(node, "function") != "require" or given is None:
        return ""
    return literal(code, given.named_children[0]) if given.named_children else ""


_READERS: Final[Mapping[str, Callable[[_Place, Documented], None]]] = {
    "ambient_declaration": _declared,
    "enum_declaration": _type,
    "export_statement": _export,
    "expression_statement": _expression,
    "import_statement": _import,
    "interface_declaration": _type,
    "internal_module": _namespace,
    "lexical_declaration": _values,
    "module": _namespace,
    "type_alias_declaration": _type,
    "variable_declaration": _values,
    ERROR: lambda place, statement: _read_all(place, statement.node.children),
}
