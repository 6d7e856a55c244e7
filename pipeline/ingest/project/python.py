"""The outline of a Python file."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pipeline.ingest.project.comments import purpose, purpose_of_comments, summary
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
from pipeline.ingest.project.syntax import ERROR, MAX_DEPTH, Code, Node, leading_comments, line_of, parameters_of

_COMMENTS: Final = frozenset({"comment"})
# What only surrounds definitions.
_AROUND: Final = frozenset(
    """
    if_statement elif_clause else_clause try_statement except_clause except_group_clause finally_clause with_statement
    block
    """.split()  # noqa: SIM905 - readable as words
) | {ERROR}
_QUOTES: Final = re.compile(r"^[a-zA-Z]*(\"\"\"|'''|\"|')(.*)\1$", re.DOTALL)
_TYPE_PARAMETERS: Final = re.compile(r"(?:typing\.)?(?:TypeVar|TypeVarTuple|ParamSpec)\(")
# They say how a thing is made, not what it is.
_PLAIN_DECORATORS: Final = frozenset({"staticmethod", "classmethod", "override", "abstractmethod", "final", "wraps"})
_ACCESSORS: Final = (".setter", ".deleter", ".getter")
_TEST: Final = "test_"


def outline_python(code: Code) -> Outline:
    """Return what a Python file holds."""
    statements = list(_statements(code.root.named_children))
    symbols = tuple(symbol for node in statements for symbol in _symbols(code, node, "", MAX_DEPTH))
    return Outline(_purpose(code), symbols, tuple(_imports(code, statements)))


def _statements(nodes: Iterable[Node], depth: int = 0) -> Iterator[Node]:
    for node in nodes:
        if node.type in _AROUND:
            if depth < MAX_DEPTH:
                yield from _statements(node.named_children, depth + 1)
        else:
            yield node


def _symbols(code: Code, node: Node, owner: str, depth: int, *, public: bool = True) -> Iterator[Symbol]:
    decorators: list[str] = []
    if node.type == "decorated_definition":
        decorators = [code.text(child)[1:].strip() for child in node.named_children if child.type == "decorator"]
        inner = node.child_by_field_name("definition")
        if inner is None:
            return
        node = inner
    if node.type == "function_definition":
        # One that takes nothing says nothing.
        if code.field(node, "name") == "__init__" and len(parameters_of(node, _COMMENTS)) < 2:
            return
        if not any(_plain_name(name) == "overload" or name.endswith(_ACCESSORS) for name in decorators):
            yield _function(code, node, owner, decorators, public=public)
    elif node.type == "class_definition":
        yield from _class(code, node, owner, decorators, depth, public=public)
    elif not owner and node.type in ("expression_statement", "type_alias_statement"):
        yield from _constants(code, node)


def _function(code: Code, node: Node, owner: str, decorators: Sequence[str], *, public: bool) -> Symbol:
    own = code.field(node, "name")
    name = f"{owner}{own}"
    if own.startswith(_TEST):
        return Symbol(name, name, line_of(node), role=Role.TEST)
    given = parameters_of(node, _COMMENTS)
    if owner and given and code.text(given[0]) in ("self", "cls"):
        given = given[1:]
    returned = code.field(node, "return_type")
    result = f" -> {returned}" if returned else ""
    written = callable_signature(name, [code.text(one) for one in given], [_named(code, one) for one in given], result)
    if any(_plain_name(one) in ("property", "cached_property") for one in decorators):
        written = one_line(f"{name}{result}")
    asynchronous = "async " if node.children and node.children[0].type == "async" else ""
    shown = f"{_decoration(decorators)}{asynchronous}{written}"
    return Symbol(name, shown, line_of(node), summary(_docstring(code, node)), public and _is_public(own))


def _class(
    code: Code, node: Node, owner: str, decorators: Sequence[str], depth: int, *, public: bool
) -> Iterator[Symbol]:
    own = code.field(node, "name")
    name = f"{owner}{own}"
    public = public and not own.startswith("_")
    bases = one_line(code.field(node, "superclasses"))
    body = list(_statements(_children(node, "body")))
    yield Symbol(
        name,
        f"{_decoration(decorators)}class {name}{shortened(bases, LONGEST_ATTRIBUTE) if bases != '()' else ''}",
        line_of(node),
        summary(_docstring(code, node)),
        public,
        fields=tuple(dict.fromkeys(_fields(code, body))),
    )
    if depth:
        for child in body:
            yield from _symbols(code, child, f"{name}.", depth - 1, public=public)


def _fields(code: Code, body: Iterable[Node]) -> Iterator[str]:
    for left, _ in _assignments(code, body):
        if not left.startswith("_"):
            yield left


def _constants(code: Code, node: Node) -> Iterator[Symbol]:
    if node.type == "type_alias_statement":
        written = valued(code.field(node, "left"), code.field(node, "right"))
        yield Symbol(code.field(node, "left"), written, line_of(node), role=Role.CONSTANT)
    for name, value in _assignments(code, [node]):
        if name[:1].isupper() and not _TYPE_PARAMETERS.match(value):
            yield Symbol(name, valued(name, value), line_of(node), role=Role.CONSTANT)


def _assignments(code: Code, statements: Iterable[Node]) -> Iterator[tuple[str, str]]:
    for statement in statements:
        inner = statement.named_children if statement.type == "expression_statement" else []
        if inner and inner[0].type == "assignment":
            left = inner[0].child_by_field_name("left")
            if left is not None and left.type == "identifier":
                yield code.text(left), code.field(inner[0], "right")


def _purpose(code: Code) -> str:
    if told := purpose(_docstring_of(code, code.root.named_children)):
        return told
    return purpose_of_comments(leading_comments(code, code.root.children, _COMMENTS))


def _docstring(code: Code, node: Node) -> str:
    return _docstring_of(code, _children(node, "body"))


def _docstring_of(code: Code, body: Iterable[Node]) -> str:
    first = next((node for node in body if node.type != "comment"), None)
    if first is None or first.type != "expression_statement" or len(first.named_children) != 1:
        return ""
    quoted = _QUOTES.match(code.text(first)) if first.named_children[0].type == "string" else None
    return quoted[2] if quoted else ""


def _children(node: Node, field: str) -> list[Node]:
    inner = node.child_by_field_name(field)
    return [] if inner is None else inner.named_children


def _named(code: Code, parameter: Node) -> str:
    return re.split(r"[:=]", code.text(parameter), maxsplit=1)[0].strip()


def _plain_name(decorator: str) -> str:
    return decorator.partition("(")[0].rpartition(".")[2]


def _decoration(decorators: Sequence[str]) -> str:
    return decoration(one for one in decorators if _plain_name(one) not in _PLAIN_DECORATORS)


def _is_public(name: str) -> bool:
    return not name.startswith("_") or name in ("__init__", "__call__")


def _imports(code: Code, statements: Iterable[Node]) -> Iterator[Import]:
    for node in statements:
        names = [_imported(code, name) for name in node.children_by_field_name("name")]
        if node.type == "import_from_statement":
            yield Import(code.field(node, "module_name"), tuple(names))
        elif node.type == "import_statement":
            yield from map(Import, names)


def _imported(code: Code, node: Node) -> str:
    return code.field(node, "name") if node.type == "aliased_import" else code.text(node)
