"""Source code as a tree: the only place that knows the parser."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Final

import tree_sitter_go
import tree_sitter_java
import tree_sitter_javascript
import tree_sitter_python
import tree_sitter_rust
import tree_sitter_typescript
from tree_sitter import Language, Node, Parser

from pipeline.ingest.project.unfit import Unfit

# The parser reports after every hundred steps. Source code takes up to 10 reports for 1000 bytes; text that is none
# may take a hundred, and minutes.
MAX_REPORTS: Final = 20_000
CHUNK_BYTES: Final = 64 * 1024
# Of declarations within declarations, or within what could not be read.
MAX_DEPTH: Final = 6
ERROR: Final = "ERROR"

_GRAMMARS: Final[dict[str, Callable[[], object]]] = {
    "python": tree_sitter_python.language,
    "javascript": tree_sitter_javascript.language,
    "typescript": tree_sitter_typescript.language_typescript,
    "tsx": tree_sitter_typescript.language_tsx,
    "go": tree_sitter_go.language,
    "rust": tree_sitter_rust.language,
    "java": tree_sitter_java.language,
}

__all__ = [
    "ERROR",
    "MAX_DEPTH",
    "Code",
    "Documented",
    "Node",
    "documented",
    "leading_comments",
    "line_of",
    "parameters_of",
    "parse",
]


@dataclass(frozen=True, slots=True)
class Code:
    """A source file's bytes and the root of its tree."""

    data: bytes
    root: Node

    def text(self, node: Node | None) -> str:
        """Return what stands at a node, "" for none."""
        return "" if node is None else self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def field(self, node: Node, name: str) -> str:
        """Return what stands in a node's field, "" for none."""
        return self.text(node.child_by_field_name(name))


@dataclass(frozen=True, slots=True)
class Documented:
    """A node, the comment directly above it, and the attributes between the two."""

    node: Node
    comment: str
    attributes: tuple[Node, ...] = ()


def parse(data: bytes, grammar: str) -> Code:
    """Return the tree of a source file, broken or not; raise Unfit for what would take too long."""
    reports = 0

    def chunk(offset: int, _point: object) -> bytes:
        return data[offset : offset + CHUNK_BYTES]

    def is_too_much(_offset: int, _has_error: bool) -> bool:
        nonlocal reports
        reports += 1
        return reports > MAX_REPORTS

    try:
        return Code(data, Parser(_language(grammar)).parse(chunk, progress_callback=is_too_much).root_node)
    except ValueError as error:
        raise Unfit("takes too long to parse") from error


def line_of(node: Node) -> int:
    """Return the line that a node begins in, from 1."""
    return node.start_point.row + 1


def parameters_of(node: Node, comments: frozenset[str]) -> list[Node]:
    """Return the parameters of a callable but those that could not be read."""
    inner = node.child_by_field_name("parameters")
    given = [] if inner is None else inner.named_children
    return [one for one in given if one.type not in comments and not one.has_error]


def documented(
    code: Code, nodes: Iterable[Node], comments: frozenset[str], attributes: frozenset[str] = frozenset()
) -> Iterator[Documented]:
    """Yield the nodes that are neither comment nor attribute, each with what stands directly above it."""
    above: list[Node] = []
    between: list[Node] = []
    last_row = -1
    for node in nodes:
        if node.type in comments:
            # What stands behind code tells of that line.
            if node.start_point.row != last_row:
                if above and node.start_point.row > _last_row(above[-1]) + 1:
                    above = []
                above.append(node)
        elif node.type in attributes:
            between.append(node)
        else:
            first = between[0] if between else node
            touches = bool(above) and first.start_point.row <= _last_row(above[-1]) + 1
            comment = "\n".join(map(code.text, above)) if touches else ""
            yield Documented(node, comment, tuple(between))
            above, between, last_row = [], [], node.end_point.row


def leading_comments(code: Code, nodes: Iterable[Node], comments: frozenset[str]) -> Iterator[str]:
    """Yield the comments that a file begins with; those on lines one below another are one."""
    block: list[Node] = []
    for node in takewhile(lambda child: child.type in comments, nodes):
        if block and node.start_point.row > _last_row(block[-1]) + 1:
            yield "\n".join(map(code.text, block))
            block = []
        block.append(node)
    if block:
        yield "\n".join(map(code.text, block))


def _last_row(node: Node) -> int:
    # Some grammars count the line's end to its comment.
    end = node.end_point
    return end.row - 1 if end.column == 0 and end.row > node.start_point.row else end.row


@lru_cache(maxsize=len(_GRAMMARS))
def _language(grammar: str) -> Language:
    return Language(_GRAMMARS[grammar]())
