"""The modules of the source tree and what they import."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("config", "pipeline", "reverie", "workers", "web")


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    tree: ast.Module
    lines: int

    def __str__(self) -> str:
        return self.name


@cache
def modules() -> tuple[Module, ...]:
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = path.read_text(encoding="utf-8")
            found.append(Module(name, path, ast.parse(text), len(text.splitlines())))
    return tuple(found)


@cache
def imports() -> dict[str, list[tuple[int, str]]]:
    """Return (line, dotted name) of everything that each module imports, wherever in it."""
    known = {module.name for module in modules()}
    return {module.name: list(_imports(module, known)) for module in modules()}


def _imports(module: Module, known: set[str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno} imports relatively"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield node.lineno, whole if whole in known or node.module == "sqlite3" else str(node.module)


def list_imports(module: Module) -> list[tuple[int, str]]:
    return imports()[module.name]


def within(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}.")
