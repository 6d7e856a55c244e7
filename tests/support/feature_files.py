"""What belongs to a feature, and a copy of the tree without it."""

import ast
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from pipeline.kernel.feature import Feature
from pipeline.kernel.registry import features, load

ROOT = Path(__file__).parents[2]
PACKAGES = ("config", "pipeline", "web", "workers")
COPIED = (*PACKAGES, "reverie", "tests", "docs", "demo", "benchmarks", "clients", "plugins", "pyproject.toml")
REGISTRY = Path("pipeline/kernel/registry.py")
TEMPLATES = Path("web/dashboard/templates")


def list_declared(feature: Feature) -> set[str]:
    """Return the modules that a declaration names."""
    jobs = {job.function.args[0] for job in feature.jobs}
    commands = {command.module for command in feature.commands}
    return {*feature.endpoints, *feature.pages, *feature.tools, *feature.stages.values(), *feature.extensions} | (
        jobs | commands
    )


def list_modules(root: Path) -> dict[str, Path]:
    """Return the product's modules by their dotted names."""
    files = (file for package in PACKAGES for file in (root / package).rglob("*.py"))
    return {name_module(file.relative_to(root)): file for file in files}


def name_module(file: Path) -> str:
    """Return the dotted name of a file."""
    parts = file.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def list_imported(file: Path, known: Iterable[str]) -> Iterator[str]:
    """Yield the modules of the product that a file imports, at its top or in a function."""
    names = set(known)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & names
            yield from inner or ({node.module} & names)


@cache
def read_imports(root: Path) -> Mapping[str, frozenset[str]]:
    """Return the modules of the product that each of them imports."""
    modules = list_modules(root)
    return {name: frozenset(list_imported(file, modules)) for name, file in modules.items()}


def find_owned(feature: Feature, root: Path = ROOT) -> dict[str, Path]:
    """Return the modules of a feature: its folders, what it declares, and what only these modules import."""
    modules = list_modules(root)
    importers: Mapping[str, set[str]] = {name: set() for name in modules}
    for name, imports in read_imports(root).items():
        for imported in imports:
            importers[imported].add(name)
    for other in features():
        for name in list_declared(other):
            importers[name].add(f"pipeline.features.{other.name}")
    folders = (f"pipeline.features.{feature.name}", f"web.features.{feature.name}")
    owned = {name for name in modules if name.startswith(tuple(f"{folder}." for folder in folders)) or name in folders}
    owned |= list_declared(feature)
    while more := {name for name, by in importers.items() if name not in owned and by and by <= owned}:
        owned |= more
    return {name: modules[name] for name in owned}


def list_uses(feature: Feature, root: Path = ROOT) -> list[str]:
    """Return the imports of a feature's modules by other modules."""
    owned = find_owned(feature, root).keys()
    return sorted(
        f"{name} imports {imported}"
        for name, imports in read_imports(root).items()
        if name not in owned
        for imported in imports & owned
    )


def list_tables(feature: Feature) -> list[str]:
    """Return the names of the tables that only this feature uses."""
    stores = load(module for module, points in feature.extensions.items() if "TABLES" in points)
    # Every part of a store keeps single values in `meta`.
    return [table.name for store in stores for table in store.TABLES if table.name != "meta"]


def copy_without(feature: Feature, target: Path) -> None:
    """Copy the tree without a feature: its modules, pages, tables and tests, and its line in the registry."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        else:
            shutil.copy(ROOT / name, target / name)
    owned = find_owned(feature)
    for file in owned.values():
        for page in re.findall(r'"(\w+\.html)"', file.read_text(encoding="utf-8")):
            (target / TEMPLATES / page).unlink(missing_ok=True)
        (target / file.relative_to(ROOT)).unlink()
    for schema in (target / "pipeline").rglob("*.sql"):
        schema.write_text(_drop_tables(schema.read_text(encoding="utf-8"), list_tables(feature)), encoding="utf-8")
    registry = target / REGISTRY
    lines = registry.read_text(encoding="utf-8").splitlines(keepends=True)
    registry.write_text("".join(line for line in lines if line != f'    "{feature.name}",\n'), encoding="utf-8")
    for test in (target / "tests").rglob("*.py"):
        if set(list_imported(test, owned)):
            test.unlink()


def _drop_tables(schema: str, tables: Iterable[str]) -> str:
    """Return SQL without the statements that create tables and their indexes."""
    for table in tables:
        schema = re.sub(rf"^CREATE TABLE {table} \(.*?^\)[^;]*;\n", "", schema, flags=re.DOTALL | re.MULTILINE)
        schema = re.sub(rf"^CREATE[^;]* INDEX \w+ ON {table} [^;]*;\n", "", schema, flags=re.MULTILINE)
        schema = re.sub(rf"^CALL \w+\('{table}'[^;]*;\n", "", schema, flags=re.MULTILINE)
    return schema
