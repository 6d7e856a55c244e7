"""How functions, classes and what they hold are written in JavaScript and TypeScript."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from pipeline.ingest.project.comments import bare, summary
from pipeline.ingest.project.outline import (
    LONGEST_ATTRIBUTE,
    Symbol,
    callable_signature,
    decoration,
    one_line,
    shortened,
)
from pipeline.ingest.project.syntax import Code, Node, documented, line_of, parameters_of

COMMENTS: Final = frozenset({"comment", "html_comment", "hash_bang_line"})
FUNCTIONS: Final = frozenset(
    """
    function_declaration generator_function_declaration function_signature function_expression generator_function
    arrow_function
    """.split()  # noqa: SIM905 - readable as words
)
CLASSES: Final = frozenset({"class_declaration", "abstract_class_declaration", "class"})
PROPERTY: Final = frozenset({"pair", "shorthand_property_identifier"})
_METHODS: Final = frozenset({"method_definition", "abstract_method_signature", "method_signature"})
_FIELDS: Final = frozenset({"public_field_definition", "field_definition", "property_signature"})
_DECORATOR: Final = frozenset({"decorator"})
_HIDDEN: Final = frozenset({"private", "protected"})
_LONGEST_PATTERN: Final = 40


@dataclass(frozen=True, slots=True)
class Member:
    """A symbol, and whether it is private to what it belongs to."""

    symbol: Symbol
    hidden: bool = False


def literal(code: Code, node: Node | None) -> str:
    """Return what a string or a template says, "" for anything else."""
    if node is None or node.type not in ("string", "template_string"):
        return ""
    return one_line(code.text(node)[1:-1])


def function_signature(code: Code, node: Node, name: str) -> str:
    """Write a function or method under a name."""
    single = node.child_by_field_name("parameter")
    given = parameters_of(node, COMMENTS) if single is None else [single]
    words = {child.type for child in node.children}
    before = "".join(f"{word} " for word in ("async", "get", "set") if word in words)
    return before + callable_signature(
        name, [code.text(one) for one in given], [_named(code, one) for one in given], code.field(node, "return_type")
    )


def class_signature(code: Code, node: Node, name: str) -> str:
    """Write a class with what it extends and implements."""
    heritage = next((code.text(child) for child in node.children if child.type == "class_heritage"), "")
    keyword = "abstract class" if node.type.startswith("abstract") else "class"
    return f"{keyword} {name} {shortened(one_line(heritage), LONGEST_ATTRIBUTE)}".rstrip()


def class_members(code: Code, node: Node, owner: str) -> Iterator[Member]:
    """Yield the methods of a class, fields that are functions among them."""
    body = node.child_by_field_name("body")
    for entry in documented(code, [] if body is None else body.children, COMMENTS, _DECORATOR):
        value = entry.node.child_by_field_name("value")
        function = value if value is not None and value.type in FUNCTIONS else entry.node
        if (entry.node.type in _METHODS or function is value) and (entry.comment or not _is_accessor(entry.node)):
            name = _name_node(entry.node)
            whole = f"{owner}{code.text(name)}"
            decorators = decorators_of(code, [*entry.attributes, *entry.node.children])
            written = f"{decorators}{function_signature(code, function, whole)}"
            symbol = Symbol(whole, written, line_of(name or entry.node), summary(bare(entry.comment)))
            yield Member(symbol, _hidden(code, entry.node))


def fields_of(code: Code, body: Node | None) -> tuple[str, ...]:
    """Return the names of what a class, an interface, a type or an enumeration holds besides methods of a class."""
    return tuple(dict.fromkeys(_fields(code, body))) if body is not None else ()


def decorators_of(code: Code, nodes: Iterable[Node]) -> str:
    """Write the decorators among some nodes."""
    return decoration(code.text(node).removeprefix("@") for node in nodes if node.type == "decorator")


def _fields(code: Code, body: Node) -> Iterator[str]:
    for node in body.named_children:
        value = node.child_by_field_name("value")
        is_method = node.type == "method_signature" and body.type != "class_body"
        is_value = node.type in _FIELDS and (value is None or value.type not in FUNCTIONS)
        if (is_value or _is_accessor(node)) and not _hidden(code, node):
            yield _own_name(code, node)
        elif is_method:
            yield f"{_own_name(code, node)}()"
        elif node.type == "enum_assignment":
            yield _own_name(code, node)
        elif body.type == "enum_body" and node.type in ("property_identifier", "string"):
            yield code.text(node)


def _is_accessor(node: Node) -> bool:
    return any(child.type in ("get", "set") for child in node.children)


def _name_node(node: Node) -> Node | None:
    # Grammars differ in what they call the name of a field.
    return node.child_by_field_name("name") or node.child_by_field_name("property")


def _own_name(code: Code, node: Node) -> str:
    return code.text(_name_node(node))


def _hidden(code: Code, node: Node) -> bool:
    return _own_name(code, node).startswith(("#", "_")) or any(
        child.type == "accessibility_modifier" and code.text(child) in _HIDDEN for child in node.children
    )


def _named(code: Code, parameter: Node) -> str:
    pattern = parameter.child_by_field_name("pattern") or parameter.child_by_field_name("left") or parameter
    text = one_line(code.text(pattern))
    return text if len(text) <= _LONGEST_PATTERN else "{…}"
