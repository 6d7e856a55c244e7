"""The outline of a Rust file."""

import re
from collections.abc import Iterator
from typing import Final

from pipeline.ingest.project.comments import bare, purpose, purpose_of_comments, summary
from pipeline.ingest.project.outline import Import, Outline, Role, Symbol, callable_signature, one_line, valued
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
_ATTRIBUTES: Final = frozenset({"attribute_item"})
_INNER_DOC: Final = ("//!", "/*!")
_OUTER_DOC: Final = ("///", "/**")
_TYPES: Final = {"struct_item": "struct", "enum_item": "enum", "union_item": "union", "trait_item": "trait"}
_VALUES: Final = frozenset({"const_item", "static_item", "type_item"})
_FUNCTIONS: Final = frozenset({"function_item", "function_signature_item"})
_TEST: Final = re.compile(r"#\[(?:\w+::)*(?:test|rstest|test_case)\b")
_TYPE_NAME: Final = re.compile(r"[\w:]+")
_HOLDS: Final = frozenset({"field_declaration", "enum_variant", "function_signature_item", "associated_type"})


def outline_rust(code: Code) -> Outline:
    """Return what a Rust file holds."""
    symbols = tuple(_symbols(code, code.root.children, "", MAX_DEPTH, public=True))
    return Outline(_purpose(code), symbols, tuple(_imports(code, code.root.children)))


def _purpose(code: Code) -> str:
    inner = [text for node in code.root.children if (text := code.text(node)).startswith(_INNER_DOC)]
    if inner:
        return purpose(bare("\n".join(text.rstrip("\n") for text in inner)))
    leading = leading_comments(code, code.root.children, _COMMENTS)
    return purpose_of_comments(text for text in leading if not text.startswith(_OUTER_DOC))


def _symbols(code: Code, nodes: list[Node], owner: str, depth: int, *, public: bool) -> Iterator[Symbol]:
    for one in documented(code, nodes, _COMMENTS, _ATTRIBUTES):
        kind = one.node.type
        if kind in _FUNCTIONS:
            yield _function(code, one, owner, public=public)
        elif kind in _TYPES:
            yield _type(code, one, owner, public=public)
            if kind == "trait_item":
                yield from _trait_members(code, one.node, owner, depth, public=public)
        elif kind in _VALUES:
            yield from _value(code, one, owner, public=public)
        elif kind == "macro_definition":
            exported = any("macro_export" in code.text(attribute) for attribute in one.attributes)
            name = f"{code.field(one.node, 'name')}!"
            yield Symbol(name, f"macro {name}", line_of(one.node), _doc(one), exported)
        elif depth:
            yield from _around(code, one, owner, depth, public=public)


def _around(code: Code, one: Documented, owner: str, depth: int, *, public: bool) -> Iterator[Symbol]:
    """Yield what stands within an implementation, a module, or what could not be read."""
    body = one.node.child_by_field_name("body")
    if one.node.type == ERROR:
        yield from _symbols(code, one.node.children, owner, depth - 1, public=public)
    elif one.node.type == "impl_item":
        yield from _implementation(code, one.node, owner, depth, public=public)
    elif one.node.type == "mod_item" and body is not None:
        name = code.field(one.node, "name")
        visible = public and (_is_public(one.node) or name in ("test", "tests"))
        yield from _symbols(code, body.children, f"{owner}{name}::", depth - 1, public=visible)


def _function(code: Code, one: Documented, owner: str, *, public: bool) -> Symbol:
    node = one.node
    name = f"{owner}{code.field(node, 'name')}"
    if any(_TEST.match(code.text(attribute)) for attribute in one.attributes):
        return Symbol(name, name, line_of(node), role=Role.TEST)
    given = parameters_of(node, _COMMENTS | _ATTRIBUTES)
    returned = code.field(node, "return_type")
    modifiers = next((code.text(child) for child in node.children if child.type == "function_modifiers"), "")
    asynchronous = "async " if "async" in modifiers.split() else ""
    names = [code.field(child, "pattern") or code.text(child) for child in given]
    written = callable_signature(
        name, [code.text(child) for child in given], names, f" -> {returned}" if returned else ""
    )
    return Symbol(name, f"{asynchronous}{written}", line_of(node), _doc(one), public and _is_public(node))


def _type(code: Code, one: Documented, owner: str, *, public: bool) -> Symbol:
    node = one.node
    name = f"{owner}{code.field(node, 'name')}"
    generic = one_line(code.field(node, "type_parameters"))
    body = node.child_by_field_name("body")
    fields = [] if body is None or node.type == "trait_item" else list(_fields(code, body))
    written = f"{_TYPES[node.type]} {name}{generic if len(generic) <= 20 else ''}"
    visible = public and _is_public(node)
    return Symbol(name, written, line_of(node), _doc(one), visible, fields=tuple(fields))


def _fields(code: Code, body: Node) -> Iterator[str]:
    for node in body.named_children:
        if node.type == "enum_variant" or (node.type == "field_declaration" and _is_public(node)):
            yield code.field(node, "name")


def _trait_members(code: Code, node: Node, owner: str, depth: int, *, public: bool) -> Iterator[Symbol]:
    body = node.child_by_field_name("body")
    if body is not None and depth:
        visible = public and _is_public(node)
        name = f"{owner}{code.field(node, 'name')}::"
        for one in documented(code, body.children, _COMMENTS, _ATTRIBUTES):
            if one.node.type in _FUNCTIONS:
                written = _function(code, one, name, public=visible)
                # What belongs to a trait is as visible as the trait.
                yield Symbol(written.name, written.signature, written.line, written.doc, visible)


def _implementation(code: Code, node: Node, owner: str, depth: int, *, public: bool) -> Iterator[Symbol]:
    body, trait = node.child_by_field_name("body"), one_line(code.field(node, "trait"))
    named = _TYPE_NAME.search(code.field(node, "type").lstrip("&'"))
    name = f"{owner}{named[0] if named else code.field(node, 'type')}"
    if trait:
        # Its methods are the trait's.
        yield Symbol(f"{name}: {trait}", f"impl {trait} for {name}", line_of(node), public=public)
    elif body is not None:
        yield from _symbols(code, body.children, f"{name}::", depth - 1, public=public)


def _value(code: Code, one: Documented, owner: str, *, public: bool) -> Iterator[Symbol]:
    if public and _is_public(one.node):
        name = f"{owner}{code.field(one.node, 'name')}"
        value = code.field(one.node, "type" if one.node.type == "type_item" else "value")
        yield Symbol(name, valued(name, value), line_of(one.node), role=Role.CONSTANT)


def _imports(code: Code, nodes: list[Node]) -> Iterator[Import]:
    for node in nodes:
        if node.type == "use_declaration":
            # Only the path counts, not how its end is spread or renamed.
            path = one_line(code.field(node, "argument")).partition("{")[0].partition(" as ")[0]
            yield Import(path.removesuffix("::*").rstrip(":"))
        elif node.type == "mod_item" and node.child_by_field_name("body") is None:
            yield Import(f"mod {code.field(node, 'name')}")


def _doc(one: Documented) -> str:
    lines = [line for line in one.comment.splitlines() if not line.lstrip().startswith(_INNER_DOC)]
    comment = "\n".join(lines)
    return summary(bare(comment)) if comment.lstrip().startswith(_OUTER_DOC) else ""


def _is_public(node: Node) -> bool:
    return any(child.type == "visibility_modifier" for child in node.children)
