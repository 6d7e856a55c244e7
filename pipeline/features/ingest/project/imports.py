"""Resolve the imports of a source file to files of its project, if it is certain which they mean."""

import posixpath
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Final

from pipeline.features.ingest.project.files import SkippedFile, read_file, text_of
from pipeline.features.ingest.project.outline import Import

KEPT_FOLDERS: Final = 1024

_ENDINGS: Final = ("ts", "tsx", "d.ts", "js", "jsx", "mts", "cts", "mjs", "cjs")
# A TypeScript file refers to another by its compiled name.
_COMPILED: Final = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
_GO_MODULE: Final = re.compile(r"^\s*module\s+\"?([^\s\"]+)", re.MULTILINE)
_RUST_MODULE: Final = re.compile(r"^(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;")
_CRATE_ROOTS: Final = ("lib.rs", "main.rs")
_INNER_MODULES: Final = ("mod.rs", *_CRATE_ROOTS)


class ProjectTree:
    """The files below a root, by folder; each folder is listed once per run."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names: Callable[[str], frozenset[str]] = lru_cache(KEPT_FOLDERS)(self._list_folder)
        self._module: Callable[[str], str] = lru_cache(KEPT_FOLDERS)(self._module_name)

    def has(self, key: str) -> bool:
        """Tell whether a file or folder with this POSIX path below the root exists."""
        folder = ""
        for name in key.split("/"):
            if name not in self._names(folder):
                return False
            folder = posixpath.join(folder, name)
        return True

    def first(self, keys: Iterable[str]) -> str | None:
        """Return the first path that exists within the root."""
        return next((key for key in map(posixpath.normpath, keys) if self.has(key)), None)

    def go_module(self, folder: str) -> tuple[str, str] | None:
        """Return the name and the folder of the Go module that a folder belongs to."""
        for above in _upwards(folder):
            if self.has(posixpath.join(above, "go.mod")):
                return self._module(above), above
        return None

    def _list_folder(self, folder: str) -> frozenset[str]:
        try:
            return frozenset(entry.name for entry in (self._root / folder).iterdir())
        except (OSError, ValueError):
            # A folder that cannot be listed contains nothing that an import could name.
            return frozenset()

    def _module_name(self, folder: str) -> str:
        try:
            match = _GO_MODULE.search(text_of(read_file(str(self._root / folder / "go.mod"))[0]))
        except SkippedFile:
            return ""
        return match[1] if match else ""


def _upwards(folder: str) -> Iterator[str]:
    yield folder
    while folder:
        folder = posixpath.dirname(folder)
        yield folder


def resolve(imports: Iterable[Import], grammar: str, key: str, tree: ProjectTree) -> list[str]:
    """Return the imports of a file, each once: files and folders of the project first."""
    candidates, foreign = _LANGUAGES[grammar]
    own: list[str] = []
    others: list[str] = []
    for imported in imports:
        target = tree.first(candidates(imported, key, tree))
        (others if target is None else own).append(target or foreign(imported.module))
    return [name for name in dict.fromkeys([*own, *others]) if name and name != key]


def _python(imported: Import, key: str, tree: ProjectTree) -> Iterator[str]:
    """Yield the module that an imported name may be, then the module that contains it."""
    path = imported.module.lstrip(".").replace(".", "/")
    level = len(imported.module) - len(imported.module.lstrip("."))
    folder = posixpath.dirname(key)
    bases = [posixpath.join(folder, *[".."] * (level - 1))]
    if not level:
        bases = [] if path.partition("/")[0] in sys.stdlib_module_names else _python_roots(folder, tree)
    for base in bases:
        for module in (posixpath.join(base, path, imported.name), posixpath.join(base, path)):
            yield from (f"{module.rstrip('/')}.py", f"{module}/__init__.py")


def _python_roots(folder: str, tree: ProjectTree) -> list[str]:
    """Return where absolute imports of a file start: above its outermost package, at the root, in `src`."""
    above = folder
    while above and tree.has(posixpath.join(above, "__init__.py")):
        above = posixpath.dirname(above)
    return list(dict.fromkeys([above, "", "src"]))


def _javascript(imported: Import, key: str, _tree: ProjectTree) -> Iterator[str]:
    if not imported.module.startswith("."):
        return
    path = posixpath.join(posixpath.dirname(key), imported.module)
    stem, ending = posixpath.splitext(path)
    yield from (f"{stem}{other}" for other in _COMPILED.get(ending, ()))
    if ending:
        yield path
    yield from (f"{path}.{other}" for other in _ENDINGS)
    yield from (f"{path}/index.{other}" for other in _ENDINGS)


def _go(imported: Import, key: str, tree: ProjectTree) -> Iterator[str]:
    name, folder = tree.go_module(posixpath.dirname(key)) or ("", "")
    path = imported.module.strip('"`')
    if name and path.startswith(f"{name}/"):
        yield posixpath.join(folder, path[len(name) + 1 :])


def _rust(imported: Import, key: str, tree: ProjectTree) -> Iterator[str]:
    """Yield the file of a module that is declared here, or of the innermost module on a path."""
    folder, name = posixpath.split(key)
    if declared := _RUST_MODULE.search(imported.module):
        inside = folder if name in _INNER_MODULES else posixpath.join(folder, name.removesuffix(".rs"))
        yield from _rust_files(posixpath.join(inside, declared[1]))
    elif imported.module.startswith("crate::"):
        path = _rust_path(imported.module).split("::")[1:]
        roots = (up for up in _upwards(folder) if any(tree.has(posixpath.join(up, root)) for root in _CRATE_ROOTS))
        for crate in [*roots][:1]:
            for end in range(len(path), 0, -1):
                yield from _rust_files(posixpath.join(crate, *path[:end]))


def _rust_files(path: str) -> tuple[str, str]:
    return f"{path}.rs", f"{path}/mod.rs"


def _rust_path(text: str) -> str:
    # Only the path matters, not how its end is destructured or renamed.
    return " ".join(text.split()).partition("{")[0].partition(" as ")[0].rstrip(";").removesuffix("::*").rstrip(":")


def _java(imported: Import, key: str, _tree: ProjectTree) -> Iterator[str]:
    """Yield the file of an imported class, by its package below the folder that contains both packages."""
    path, parts = _java_path(imported.module), posixpath.dirname(key).split("/")
    if path[0] not in parts:
        return
    root = "/".join(parts[: parts.index(path[0])])
    # A nested class or a method is in the file of its outer class.
    classes = [end for end in range(len(path), 0, -1) if path[end - 1][:1].isupper()]
    if path[-1] == "*" and not classes:
        yield posixpath.join(root, *path[:-1])
    yield from (f"{posixpath.join(root, *path[:end])}.java" for end in reversed(classes))


def _java_path(text: str) -> list[str]:
    return "".join(text.rstrip(" ;").split()[-1:]).split(".")


def _java_package(text: str) -> str:
    # For external imports the package is enough.
    return ".".join(takewhile(lambda part: part[:1].islower(), _java_path(text)))


_Candidates = Callable[[Import, str, ProjectTree], Iterator[str]]
# For each language: the files that an import may refer to, and the name of an external import.
_LANGUAGES: Final[Mapping[str, tuple[_Candidates, Callable[[str], str]]]] = {
    "python": (_python, str),
    "javascript": (_javascript, str),
    "typescript": (_javascript, str),
    "tsx": (_javascript, str),
    "go": (_go, lambda text: text.strip('"`')),
    "rust": (_rust, _rust_path),
    "java": (_java, _java_package),
}
