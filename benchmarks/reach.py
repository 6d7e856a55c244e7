"""Count the files and functions that a prompt, a recall and a write can reach.

Run by `make reach`. From each handler, this follows the names in its code. mypy finds the class of each attribute. A
method also reaches what overrides it in the classes that the request names. The figures are an upper bound: they
contain code that only another setting or another store runs.
"""

import argparse
import contextlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from mypy.build import build
from mypy.find_sources import create_source_list
from mypy.nodes import (
    AssignmentStmt,
    ClassDef,
    Decorator,
    FuncDef,
    ListExpr,
    MemberExpr,
    MypyFile,
    NameExpr,
    Node,
    OverloadedFuncDef,
    RefExpr,
    Statement,
    SuperExpr,
    TupleExpr,
    TypeInfo,
    Var,
)
from mypy.options import Options
from mypy.types import (
    FunctionLike,
    Instance,
    TupleType,
    Type,
    TypeType,
    TypeVarType,
    UnionType,
    get_proper_type,
)

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("config", "pipeline", "web", "workers")
# The handlers of what an agent waits for.
REQUESTS: Final = {
    "prompt": "web.hooks.claude_code._prompt",
    "recall": "web.features.recall.http.recall",
    "write": "web.features.memories.http.remember",
}
# Methods that run without their names.
IMPLICIT: Final = re.compile(r"__\w+__")
# Attributes that lead from a name to its definition, or to a copy of the node.
LINKS: Final = frozenset({"def_var", "expanded", "info", "node", "original_decorators", "original_def"})


class Code:
    """The definitions of packages, by their full names."""

    def __init__(self, root: Path, packages: Sequence[str]) -> None:
        options = Options()
        options.incremental, options.cache_dir, options.follow_imports = False, os.devnull, "skip"
        options.preserve_asts = options.export_types = options.ignore_errors = options.ignore_missing_imports = True
        with contextlib.chdir(root):
            result = build(create_source_list(list(packages), options), options)
        self.types = result.types
        self.definitions: dict[str, list[Node]] = defaultdict(list)
        self.file_of: dict[str, str] = {}
        self.subclasses: dict[str, list[str]] = defaultdict(list)
        for name, module in result.files.items():
            if name.split(".")[0] in packages:
                for statement in module.defs:
                    self._define(statement, name, module.path)

    def _define(self, statement: Node, prefix: str, path: str) -> None:
        """Enter what a statement defines, also under a condition and in a class."""
        names = list(_list_defined(statement))
        for name in names:
            self.definitions[f"{prefix}.{name}"].append(statement)
            self.file_of[f"{prefix}.{name}"] = path
        if isinstance(statement, ClassDef):
            for base in statement.info.mro[1:]:
                self.subclasses[base.fullname].append(statement.fullname)
            prefix = statement.fullname
        if isinstance(statement, ClassDef) or not names:
            for child in _list_children(statement):
                if isinstance(child, Statement):
                    self._define(child, prefix, path)

    def list_named(self, node: Node) -> Iterator[str]:
        """List the full names that a part of the code refers to."""
        if isinstance(node, RefExpr):
            yield node.fullname
        for owner, name in self.list_attributes(node):
            yield from islice((f"{base.fullname}.{name}" for base in owner.mro if name in base.names), 1)

    def list_attributes(self, node: Node) -> Iterator[tuple[TypeInfo, str]]:
        """List the attributes that a part of the code names, each with its class."""
        if isinstance(node, MemberExpr) and node.expr in self.types:
            yield from ((owner, node.name) for owner in _list_classes(self.types[node.expr]))
        elif isinstance(node, SuperExpr) and node.info:
            yield from ((owner, node.name) for owner in node.info.mro[1:2])


class Closure:
    """All that one handler can reach."""

    def __init__(self, code: Code, handler: str) -> None:
        if handler not in code.definitions:
            raise LookupError(f"no function {handler}")
        self.code, self.names, self.pending = code, {handler}, [handler]
        self.functions: set[tuple[str, int]] = set()
        self.called: dict[str, set[str]] = defaultdict(set)
        while self.pending:
            name = self.pending.pop()
            for definition in code.definitions[name]:
                if isinstance(definition, ClassDef):
                    self._add(self._list_implicit(definition.info))
                for node in _list_run(definition):
                    if isinstance(node, FuncDef):
                        self.functions.add((code.file_of[name], node.line))
                    self._add(code.list_named(node))
                    self._call(node)

    @property
    def files(self) -> set[str]:
        """Return the paths of the files that contain what is reached."""
        return {self.code.file_of[name] for name in self.names}

    def _add(self, names: Iterable[str]) -> None:
        fresh = (set(names) & self.code.definitions.keys()) - self.names
        self.names |= fresh
        self.pending += fresh

    def _call(self, node: Node) -> None:
        """Reach what overrides a method in a class that the handler can make."""
        for owner, name in self.code.list_attributes(node):
            self.called[owner.fullname].add(name)
            made = self.names.intersection(self.code.subclasses[owner.fullname])
            self._add(f"{subclass}.{name}" for subclass in made)

    def _list_implicit(self, info: TypeInfo) -> Iterator[str]:
        """List the methods of a class that run without their names, and those that were called on its bases."""
        for base in info.mro:
            yield from (f"{base.fullname}.{name}" for name in base.names if IMPLICIT.fullmatch(name))
            yield from (f"{info.fullname}.{name}" for name in self.called[base.fullname])


def _list_defined(node: Node) -> Iterator[str]:
    if isinstance(node, FuncDef | Decorator | OverloadedFuncDef | ClassDef):
        yield node.name
    elif isinstance(node, AssignmentStmt):
        yield from (name for target in node.lvalues for name in _list_targets(target))


def _list_targets(node: Node) -> Iterator[str]:
    if isinstance(node, NameExpr):
        yield node.name
    elif isinstance(node, TupleExpr | ListExpr):
        yield from (name for item in node.items for name in _list_targets(item))


def _list_run(definition: Node) -> Iterator[Node]:
    """List the parts of a definition that run once it is used: of a class not its methods."""
    if isinstance(definition, ClassDef):
        values = [item for item in definition.defs.body if isinstance(item, AssignmentStmt)]
        parts = [*definition.base_type_exprs, *definition.decorators, *definition.keywords.values(), *values]
        yield from (node for part in parts for node in _walk(part))
    else:
        yield from _walk(definition)


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in _list_children(node):
        yield from _walk(child)


def _list_children(node: Node) -> Iterator[Node]:
    # The visitors of mypy are compiled, and cannot be subclassed.
    for attribute in type(node).__mypyc_attrs__:
        if attribute not in LINKS:
            yield from _list_nodes(getattr(node, attribute, None))


def _list_nodes(value: object) -> Iterator[Node]:
    if isinstance(value, list | tuple):
        yield from (node for item in value for node in _list_nodes(item))
    elif isinstance(value, Node) and not isinstance(value, Var | TypeInfo | MypyFile):
        yield value


def _list_classes(of: Type) -> Iterator[TypeInfo]:
    """List the classes that a value of a type may have."""
    known = get_proper_type(of)
    if isinstance(known, UnionType):
        yield from (found for item in known.items for found in _list_classes(item))
    elif isinstance(known, Instance):
        yield known.type
    elif isinstance(known, TupleType):
        yield known.partial_fallback.type
    elif isinstance(known, TypeType):
        yield from _list_classes(known.item)
    elif isinstance(known, TypeVarType):
        yield from _list_classes(known.upper_bound)
    elif isinstance(known, FunctionLike) and known.is_type_obj():
        yield known.type_object()


def main(arguments: list[str] | None = None) -> None:
    """Print the figures of each request, or the files that one can reach."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reach", description=__doc__)
    parser.add_argument("--files", choices=REQUESTS, help="list the files that this request can reach")
    options = parser.parse_args(arguments)
    code = Code(ROOT, PACKAGES)
    if options.files:
        print(*sorted(Closure(code, REQUESTS[options.files]).files), sep="\n")
        return
    for name, handler in REQUESTS.items():
        closure = Closure(code, handler)
        print(f"{name:8} {len(closure.files):5,} files {len(closure.functions):7,} functions   {handler}")


if __name__ == "__main__":
    main()
