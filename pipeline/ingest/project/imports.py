"""Imports as files of the project where it is certain which are meant, else as they are written."""

import posixpath
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Final

from pipeline.ingest.project.contents import read_file, text_of
from pipeline.ingest.project.outline import Import
from pipeline.ingest.project.unfit import Unfit

KEPT_FOLDERS: Final = 1024

_ENDINGS: Final = ("ts", "tsx", "d.ts", "js", "jsx", "mts", "cts", "mjs", "cjs")
# A TypeScript file names another by what it will be compiled to.
_COMPILED: Final = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
_GO_MODULE: Final = re.compile(r"^\s*module\s+\"?([^\s\"]+)", re.MULTILINE)
_CRATE_ROOTS: Final = ("lib.rs", "main.rs")
_INNER_MODULES: Final = ("mod.rs", *_CRATE_ROOTS)


class Tree:
    """Which files stand where below a root; folders that were looked at are remembered for one run."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names: Callable[[str], frozenset[str]] = lru_cache(KEPT_FOLDERS)(self._listed)
        self._module: Callable[[str], str] = lru_cache(KEPT_FOLDERS)(self._module_name)

    def has(self, key: str) -> bool:
        """Tell whether a file or folder of that POSIX path below the root is there."""
        folder = ""
        for name in key.split("/"):
            if name not in self._names(folder):
                return False
            folder = posixpath.join(folder, name)
        return True

    def first(self, keys: Iterable[str]) -> str | None:
        """Return the first of some paths that is there and within the root."""
        return next((key for key in map(posixpath.normpath, keys) if self.has(key)), None)

    def go_module(self, folder: str) -> tuple[str, str] | None:
        """Return the name and the folder of the Go module that a folder belongs to."""
        for above in _upwards(folder):
            if self.has(posixpath.join(above, "go.mod")):
                return self._module(above), above
        return None

    def _listed(self, folder: str) -> frozenset[str]:
        try:
            return frozenset(place.name for place in (self._root / folder).iterdir())
        except (OSError, ValueError):
            # What cannot be looked at holds nothing that an import could mean.
            return frozenset()

    def _module_name(self, folder: str) -> str:
        try:
            found = _GO_MODULE.search(text_of(read_file(str(self._root / folder / "go.mod"))[0]))
        except Unfit:
            return ""
        return found[1] if found else ""


def _upwards(folder: str) -> Iterator[str]:
    yield folder
    while folder:
        folder = posixpath.dirname(folder)
        yield folder


def resolve(imports: Iterable[Import], grammar: str, key: str, tree: Tree) -> list[str]:
    """Return what a file imports, each once: files and folders of the project first."""
    found = list(_RESOLVERS[grammar](imports, key, tree))
    names = [name for name, is_own in found if is_own] + [name for name, is_own in found if not is_own]
    return [name for name in dict.fromkeys(names) if name and name != key]


def _python(imports: Iterable[Import], key: str, tree: Tree) -> Iterator[tuple[str, bool]]:
    roots = _python_roots(posixpath.dirname(key), tree)
    for one in imports:
        if one.module == "__future__":
            continue
        path = one.module.lstrip(".").replace(".", "/")
        level = len(one.module) - len(one.module.lstrip("."))
        if level:
            bases = [posixpath.join(posixpath.dirname(key), *[".."] * (level - 1))]
        else:
            bases = [] if path.partition("/")[0] in sys.stdlib_module_names else roots
        files = _python_files(bases, path, one.names, tree)
        yield from ((file, True) for file in files)
        if not files:
            yield one.module, False


def _python_roots(folder: str, tree: Tree) -> list[str]:
    """Return where absolute imports of a file begin: above its outermost package, at the root, in `src`."""
    above = folder
    while above and tree.has(posixpath.join(above, "__init__.py")):
        above = posixpath.dirname(above)
    return list(dict.fromkeys([above, "", "src"]))


def _python_files(bases: Iterable[str], path: str, names: Iterable[str], tree: Tree) -> list[str]:
    """Return the modules among the imported names, else the module that they are taken from."""
    for base in bases:
        whole = posixpath.join(base, path)
        inner = [tree.first(_module_files(posixpath.join(whole, name))) for name in names]
        own = tree.first(_module_files(whole))
        found = [file for file in inner if file is not None]
        if found or own:
            return found if found and len(found) == len(inner) else [*found, *([own] if own else [])]
    return []


def _module_files(path: str) -> tuple[str, str]:
    return f"{path}.py", f"{path}/__init__.py"


def _javascript(imports: Iterable[Import], key: str, tree: Tree) -> Iterator[tuple[str, bool]]:
    for one in imports:
        found = None
        if one.module.startswith("."):
            found = tree.first(_javascript_files(posixpath.join(posixpath.dirname(key), one.module)))
        yield found or one.module, found is not None


def _javascript_files(path: str) -> Iterator[str]:
    stem, ending = posixpath.splitext(path)
    yield from (f"{stem}{other}" for other in _COMPILED.get(ending, ()))
    if ending:
        yield path
    yield from (f"{path}.{other}" for other in _ENDINGS)
    yield from (f"{path}/index.{other}" for other in _ENDINGS)


def _go(imports: Iterable[Import], key: str, tree: Tree) -> Iterator[tuple[str, bool]]:
    module = tree.go_module(posixpath.dirname(key))
    for one in imports:
        found = None
        if module is not None and module[0] and one.module.startswith(f"{module[0]}/"):
            found = tree.first([posixpath.join(module[1], one.module[len(module[0]) + 1 :])])
        yield found or one.module, found is not None


def _rust(imports: Iterable[Import], key: str, tree: Tree) -> Iterator[tuple[str, bool]]:
    folder, name = posixpath.split(key)
    inside = folder if name in _INNER_MODULES else posixpath.join(folder, name.removesuffix(".rs"))
    crate = _crate_root(folder, tree)
    for one in imports:
        found = None
        if one.module.startswith("mod "):
            found = tree.first(_rust_files(posixpath.join(inside, one.module.removeprefix("mod "))))
        elif one.module.startswith("crate::") and crate is not None:
            found = _longest(crate, one.module.split("::")[1:], tree)
        yield found or one.module, found is not None


def _crate_root(folder: str, tree: Tree) -> str | None:
    roots = (above for above in _upwards(folder) if any(tree.has(posixpath.join(above, name)) for name in _CRATE_ROOTS))
    return next(roots, None)


def _longest(crate: str, path: list[str], tree: Tree) -> str | None:
    """Return the file of the innermost module that a path leads through."""
    ends = range(len(path), 0, -1)
    return tree.first(file for end in ends for file in _rust_files(posixpath.join(crate, *path[:end])))


def _rust_files(path: str) -> tuple[str, str]:
    return f"{path}.rs", f"{path}/mod.rs"


def _java(imports: Iterable[Import], key: str, tree: Tree) -> Iterator[tuple[str, bool]]:
    for one in imports:
        path = one.module.removeprefix("static ").split(".")
        found = _java_file(path, posixpath.dirname(key), tree)
        # Of what is not the project's own, the package says enough.
        yield found or ".".join(takewhile(lambda part: part[:1].islower(), path)), found is not None


def _java_file(path: list[str], folder: str, tree: Tree) -> str | None:
    """Return the file of an imported class: at its place below the folder that both packages stand in."""
    parts = folder.split("/")
    if path[0] not in parts:
        return None
    root = "/".join(parts[: parts.index(path[0])])
    # A nested class or a method stands in the file of the class around it.
    classes = [end for end in range(len(path), 0, -1) if path[end - 1][:1].isupper()]
    if path[-1] == "*" and not classes:
        return tree.first([posixpath.join(root, *path[:-1])])
    return tree.first(f"{posixpath.join(root, *path[:end])}.java" for end in reversed(classes))


_RESOLVERS: Final[Mapping[str, Callable[[Iterable[Import], str, Tree], Iterator[tuple[str, bool]]]]] = {
    "python": _python,
    "javascript": _javascript,
    "typescript": _javascript,
    "tsx": _javascript,
    "go": _go,
    "rust": _rust,
    "java": _java,
}
