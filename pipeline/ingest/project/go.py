"""The outline of a Go file."""

import re
from collections.abc import Callable, Iterator, Mapping
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

_COMMENTS: Final = frozenset({"comment"})
_RECEIVER: Final = re.compile(r"\(\s*(?:\w+\s+)?\*?\s*(\w+)")
_TEST: Final = re.compile(r"(?:Test|Benchmark|Fuzz|Example)(?![a-z])")


def outline_go(code: Code) -> Outline:
    """Return what a Go file holds."""
    statements = list(_statements(code, code.root.children, MAX_DEPTH))
    symbols = (symbol for one in statements if (read := _READERS.get(one.node.type)) for symbol in read(code, one))
    imports = (
        Import(code.field(spec, "path").strip('"`'))
        for one in statements
        if one.node.type == "import_declaration"
        for spec in _specs(one.node, "import_spec")
    )
    above = next((one.comment for one in statements if one.node.type == "package_clause"), "")
    told = purpose(bare(above)) or purpose_of_comments(leading_comments(code, code.root.children, _COMMENTS))
    return Outline(told, tuple(symbols), tuple(imports))


def _statements(code: Code, nodes: list[Node], depth: int) -> Iterator[Documented]:
    for one in documented(code, nodes, _COMMENTS):
        if one.node.type == ERROR and depth:
            yield from _statements(code, one.node.children, depth - 1)
        else:
            yield one


def _function(code: Code, one: Documented) -> Iterator[Symbol]:
    own = code.field(one.node, "name")
    receiver = _RECEIVER.match(code.field(one.node, "receiver"))
    name = f"{receiver[1]}.{own}" if receiver else own
    if not receiver and _TEST.match(own):
        yield Symbol(name, name, line_of(one.node), role=Role.TEST)
        return
    parameters = parameters_of(one.node, _COMMENTS)
    names = [", ".join(code.text(n) for n in node.children_by_field_name("name") if n.is_named) for node in parameters]
    result = code.field(one.node, "result")
    written = callable_signature(name, [code.text(node) for node in parameters], names, f" {result}" if result else "")
    public = _is_exported(own) and (receiver is None or _is_exported(receiver[1]))
    yield Symbol(name, written, line_of(one.node), summary(bare(one.comment)), public)


def _types(code: Code, one: Documented) -> Iterator[Symbol]:
    specs = [
        spec for spec in documented(code, _inside(one.node), _COMMENTS) if spec.node.type in ("type_spec", "type_alias")
    ]
    for spec in specs:
        name, shape = code.field(spec.node, "name"), spec.node.child_by_field_name("type")
        kind = "" if shape is None else shape.type.removesuffix("_type")
        written = f"type {name} {kind}" if kind in ("struct", "interface") else valued(f"type {name}", code.text(shape))
        doc = summary(bare(spec.comment)) or (summary(bare(one.comment)) if len(specs) == 1 else "")
        fields = tuple(field for field in _fields(code, shape) if _is_exported(field))
        yield Symbol(name, written.replace(" = ", " ", 1), line_of(spec.node), doc, _is_exported(name), fields=fields)


def _fields(code: Code, shape: Node | None) -> Iterator[str]:
    if shape is not None and shape.type == "struct_type":
        for field in _specs(shape, "field_declaration"):
            names = [code.text(name) for name in field.children_by_field_name("name") if name.is_named]
            # What is embedded goes by the name of its type.
            yield from names or [code.field(field, "type").lstrip("*").rpartition(".")[2].partition("[")[0]]
    elif shape is not None and shape.type == "interface_type":
        for method in shape.named_children:
            if method.type in ("method_elem", "method_spec"):
                yield f"{code.field(method, 'name')}()"


def _constants(code: Code, one: Documented) -> Iterator[Symbol]:
    for spec in (*_specs(one.node, "const_spec"), *_specs(one.node, "var_spec")):
        names = [node for node in spec.children_by_field_name("name") if node.is_named]
        value = code.field(spec, "value") if len(names) == 1 else ""
        for node in names:
            name = code.text(node)
            if _is_exported(name):
                yield Symbol(name, valued(name, one_line(value)), line_of(node), role=Role.CONSTANT)


def _inside(declaration: Node) -> list[Node]:
    """Return what stands in a declaration, whether in brackets or not."""
    return [
        inner
        for child in declaration.children
        for inner in (child.children if child.type.endswith("_list") else [child])
    ]


def _specs(declaration: Node, kind: str) -> list[Node]:
    return [node for node in _inside(declaration) if node.type == kind]


def _is_exported(name: str) -> bool:
    return name[:1].isupper()


_READERS: Final[Mapping[str, Callable[[Code, Documented], Iterator[Symbol]]]] = {
    "const_declaration": _constants,
    "function_declaration": _function,
    "method_declaration": _function,
    "type_declaration": _types,
    "var_declaration": _constants,
}
