"""The outline of a Java file."""

from collections.abc import Iterator
from typing import Final

from pipeline.ingest.project.comments import bare, purpose_of_comments, summary
from pipeline.ingest.project.outline import (
    LONGEST_ATTRIBUTE,
    Import,
    Outline,
    Role,
    Symbol,
    callable_signature,
    decoration,
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
    parameters_of,
)

_COMMENTS: Final = frozenset({"line_comment", "block_comment"})
_TYPES: Final = {
    "class_declaration": "class",
    "interface_declaration": "interface",
    "enum_declaration": "enum",
    "record_declaration": "record",
    "annotation_type_declaration": "@interface",
}
_METHODS: Final = frozenset(
    {
        "method_declaration",
        "constructor_declaration",
        "compact_constructor_declaration",
        "annotation_type_element_declaration",
    }
)
_BASES: Final = frozenset({"superclass", "super_interfaces", "extends_interfaces"})
_ANNOTATIONS: Final = frozenset({"annotation", "marker_annotation"})
# They say how a thing is compiled, not what it is.
_PLAIN: Final = frozenset({"Override", "SuppressWarnings", "Nullable", "NonNull", "NotNull", "SafeVarargs", "Inject"})
_TESTS: Final = frozenset({"Test", "ParameterizedTest", "RepeatedTest"})


def outline_java(code: Code) -> Outline:
    """Return what a Java file holds."""
    symbols = tuple(_symbols(code, code.root.children, "", MAX_DEPTH, public=True))
    statements = list(documented(code, code.root.children, _COMMENTS))
    imports = (_import(code, one.node) for one in statements if one.node.type == "import_declaration")
    # What stands directly above a type tells of that.
    own = statements[0].comment if statements and statements[0].node.type in _TYPES else ""
    leading = (text for text in leading_comments(code, code.root.children, _COMMENTS) if text != own)
    return Outline(purpose_of_comments(leading), symbols, tuple(imports))


def _symbols(code: Code, nodes: list[Node], owner: str, depth: int, *, public: bool) -> Iterator[Symbol]:
    for one in documented(code, nodes, _COMMENTS):
        kind = one.node.type
        if kind in _TYPES:
            yield from _type(code, one, owner, depth, public=public)
        elif kind in _METHODS and owner:
            yield _method(code, one, owner, public=public)
        elif kind in ("field_declaration", "constant_declaration"):
            yield from _constants(code, one.node, owner, public=public)
        elif kind in (ERROR, "enum_body_declarations") and depth:
            yield from _symbols(code, one.node.children, owner, depth - 1, public=public)


def _type(code: Code, one: Documented, owner: str, depth: int, *, public: bool) -> Iterator[Symbol]:
    node = one.node
    name = f"{owner}{code.field(node, 'name')}"
    bases = "".join(f" {one_line(code.text(child))}" for child in node.children if child.type in _BASES)
    written = f"{_decoration(code, node)}{_TYPES[node.type]} {name}{shortened(bases, LONGEST_ATTRIBUTE)}"
    body = node.child_by_field_name("body")
    visible = public and "private" not in _modifiers(node)
    fields = tuple(dict.fromkeys(_fields(code, node, body)))
    yield Symbol(name, written, line_of(_name_node(node)), summary(bare(one.comment)), visible, fields=fields)
    if body is not None and depth:
        yield from _symbols(code, body.children, f"{name}.", depth - 1, public=visible)


def _method(code: Code, one: Documented, owner: str, *, public: bool) -> Symbol:
    node = one.node
    own = code.field(node, "name")
    name, line = f"{owner}{own}", line_of(_name_node(node))
    if any(_annotation_name(code, annotation) in _TESTS for annotation in _annotations(node)):
        return Symbol(name, name, line, role=Role.TEST)
    parameters = [code.text(child).removeprefix("final ") for child in parameters_of(node, _COMMENTS)]
    names = [parameter.split()[-1] if parameter.split() else "" for parameter in parameters]
    returned = code.field(node, "type")
    written = callable_signature(name, parameters, names, f": {returned}" if returned else "")
    visible = public and "private" not in _modifiers(node)
    return Symbol(name, f"{_decoration(code, node)}{written}", line, summary(bare(one.comment)), visible)


def _constants(code: Code, node: Node, owner: str, *, public: bool) -> Iterator[Symbol]:
    words = _modifiers(node)
    is_constant = node.type == "constant_declaration" or {"static", "final"} <= words
    if public and is_constant and "private" not in words:
        for declarator in node.children_by_field_name("declarator"):
            name = f"{owner}{code.field(declarator, 'name')}"
            yield Symbol(name, valued(name, code.field(declarator, "value")), line_of(declarator), role=Role.CONSTANT)


def _fields(code: Code, node: Node, body: Node | None) -> Iterator[str]:
    yield from (code.field(component, "name") for component in parameters_of(node, _COMMENTS))
    for child in [] if body is None else body.named_children:
        if child.type == "enum_constant":
            yield code.field(child, "name")
        elif child.type == "field_declaration" and not {"private", "static"} & _modifiers(child):
            yield from (code.field(one, "name") for one in child.children_by_field_name("declarator"))


def _import(code: Code, node: Node) -> Import:
    words = one_line(code.text(node)).rstrip(" ;").split()
    return Import("static " * ("static" in words) + words[-1])


def _modifiers(node: Node) -> set[str]:
    inner = next((child for child in node.children if child.type == "modifiers"), None)
    return set() if inner is None else {child.type for child in inner.children}


def _annotations(node: Node) -> list[Node]:
    inner = next((child for child in node.children if child.type == "modifiers"), None)
    return [] if inner is None else [child for child in inner.children if child.type in _ANNOTATIONS]


def _annotation_name(code: Code, annotation: Node) -> str:
    return code.field(annotation, "name").rpartition(".")[2]


def _decoration(code: Code, node: Node) -> str:
    shown = (one for one in _annotations(node) if _annotation_name(code, one) not in _PLAIN)
    return decoration(code.text(one).removeprefix("@") for one in shown)


def _name_node(node: Node) -> Node:
    return node.child_by_field_name("name") or node
