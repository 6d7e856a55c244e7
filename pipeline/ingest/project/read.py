"""The reader of a project: walk → what each file is → did it change? → its text → its memories.

Imports are told as files of the project where it is certain which are meant, else as they are written.
"""

import hashlib
import posixpath
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from pipeline.errors import FieldError, InvalidField
from pipeline.ingest.fields import Item, Known, Progress, Reading, Readings, Skipped, Unchanged
from pipeline.ingest.project.files import (
    File,
    FileKind,
    SkippedFile,
    check_written_by_people,
    count_lines,
    kind_of_file,
    language_of,
    list_files,
    read_file,
    text_of,
)
from pipeline.ingest.project.manifests import render_manifest
from pipeline.ingest.project.outline import Import, outline_of
from pipeline.ingest.project.prose import render_prose
from pipeline.ingest.project.render import render_outline
from pipeline.records import MAX_PATH_CHARS, Anchor, Draft, Kind, Source
from pipeline.text.normalize import normalize_id
from pipeline.times import utc_text

KEPT_FOLDERS: Final = 1024

_ENDINGS: Final = ("ts", "tsx", "d.ts", "js", "jsx", "mts", "cts", "mjs", "cjs")
# A TypeScript file names another by what it will be compiled to.
_COMPILED: Final = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
_GO_MODULE: Final = re.compile(r"^\s*module\s+\"?([^\s\"]+)", re.MULTILINE)
_RUST_MODULE: Final = re.compile(r"^(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;")
_CRATE_ROOTS: Final = ("lib.rs", "main.rs")
_INNER_MODULES: Final = ("mod.rs", *_CRATE_ROOTS)
# Counted up when outlines get better, so that what is known is read again.
OUTLINE_VERSION: Final = b"outline 2\0"

# Below what people say: it can be read again at any time.
IMPORTANCE: Final = {FileKind.CODE: 0.35, FileKind.MANIFEST: 0.4, FileKind.PROSE: 0.4}
IMPORTANCE_OF_TESTS: Final = 0.25
_TEST_FOLDERS: Final = frozenset({"test", "tests", "__tests__", "testdata", "spec", "fixtures"})
_TEST_WORDS: Final = frozenset({"test", "tests", "spec", "conftest"})


class ProjectTree:
    """Which files stand where below a root; folders that were looked at are remembered for one run."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names: Callable[[str], frozenset[str]] = lru_cache(KEPT_FOLDERS)(self._list_folder)
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

    def _list_folder(self, folder: str) -> frozenset[str]:
        try:
            return frozenset(place.name for place in (self._root / folder).iterdir())
        except (OSError, ValueError):
            # What cannot be looked at holds nothing that an import could mean.
            return frozenset()

    def _module_name(self, folder: str) -> str:
        try:
            found = _GO_MODULE.search(text_of(read_file(str(self._root / folder / "go.mod"))[0]))
        except SkippedFile:
            return ""
        return found[1] if found else ""


def _upwards(folder: str) -> Iterator[str]:
    yield folder
    while folder:
        folder = posixpath.dirname(folder)
        yield folder


def resolve(imports: Iterable[Import], grammar: str, key: str, tree: ProjectTree) -> list[str]:
    """Return what a file imports, each once: files and folders of the project first."""
    candidates, foreign = _LANGUAGES[grammar]
    own: list[str] = []
    others: list[str] = []
    for one in imports:
        found = tree.first(candidates(one, key, tree))
        (others if found is None else own).append(found or foreign(one.module))
    return [name for name in dict.fromkeys([*own, *others]) if name and name != key]


def _python(one: Import, key: str, tree: ProjectTree) -> Iterator[str]:
    """Yield the module that an imported name may be, then the module that it is taken from."""
    path = one.module.lstrip(".").replace(".", "/")
    level = len(one.module) - len(one.module.lstrip("."))
    folder = posixpath.dirname(key)
    bases = [posixpath.join(folder, *[".."] * (level - 1))]
    if not level:
        bases = [] if path.partition("/")[0] in sys.stdlib_module_names else _python_roots(folder, tree)
    for base in bases:
        for module in (posixpath.join(base, path, one.name), posixpath.join(base, path)):
            yield from (f"{module.rstrip('/')}.py", f"{module}/__init__.py")


def _python_roots(folder: str, tree: ProjectTree) -> list[str]:
    """Return where absolute imports of a file begin: above its outermost package, at the root, in `src`."""
    above = folder
    while above and tree.has(posixpath.join(above, "__init__.py")):
        above = posixpath.dirname(above)
    return list(dict.fromkeys([above, "", "src"]))


def _javascript(one: Import, key: str, _tree: ProjectTree) -> Iterator[str]:
    if not one.module.startswith("."):
        return
    path = posixpath.join(posixpath.dirname(key), one.module)
    stem, ending = posixpath.splitext(path)
    yield from (f"{stem}{other}" for other in _COMPILED.get(ending, ()))
    if ending:
        yield path
    yield from (f"{path}.{other}" for other in _ENDINGS)
    yield from (f"{path}/index.{other}" for other in _ENDINGS)


def _go(one: Import, key: str, tree: ProjectTree) -> Iterator[str]:
    name, folder = tree.go_module(posixpath.dirname(key)) or ("", "")
    path = one.module.strip('"`')
    if name and path.startswith(f"{name}/"):
        yield posixpath.join(folder, path[len(name) + 1 :])


def _rust(one: Import, key: str, tree: ProjectTree) -> Iterator[str]:
    """Yield the file of a module that is declared here, or of the innermost that a path leads through."""
    folder, name = posixpath.split(key)
    if declared := _RUST_MODULE.search(one.module):
        inside = folder if name in _INNER_MODULES else posixpath.join(folder, name.removesuffix(".rs"))
        yield from _rust_files(posixpath.join(inside, declared[1]))
    elif one.module.startswith("crate::"):
        path = _rust_path(one.module).split("::")[1:]
        roots = (up for up in _upwards(folder) if any(tree.has(posixpath.join(up, root)) for root in _CRATE_ROOTS))
        for crate in [*roots][:1]:
            for end in range(len(path), 0, -1):
                yield from _rust_files(posixpath.join(crate, *path[:end]))


def _rust_files(path: str) -> tuple[str, str]:
    return f"{path}.rs", f"{path}/mod.rs"


def _rust_path(text: str) -> str:
    # Only the path counts, not how its end is spread or renamed.
    return " ".join(text.split()).partition("{")[0].partition(" as ")[0].rstrip(";").removesuffix("::*").rstrip(":")


def _java(one: Import, key: str, _tree: ProjectTree) -> Iterator[str]:
    """Yield the file of an imported class: at its place below the folder that both packages stand in."""
    path, parts = _java_path(one.module), posixpath.dirname(key).split("/")
    if path[0] not in parts:
        return
    root = "/".join(parts[: parts.index(path[0])])
    # A nested class or a method stands in the file of the class around it.
    classes = [end for end in range(len(path), 0, -1) if path[end - 1][:1].isupper()]
    if path[-1] == "*" and not classes:
        yield posixpath.join(root, *path[:-1])
    yield from (f"{posixpath.join(root, *path[:end])}.java" for end in reversed(classes))


def _java_path(text: str) -> list[str]:
    return "".join(text.rstrip(" ;").split()[-1:]).split(".")


def _java_package(text: str) -> str:
    # Of what is not the project's own, the package says enough.
    return ".".join(takewhile(lambda part: part[:1].islower(), _java_path(text)))


_Candidates = Callable[[Import, str, ProjectTree], Iterator[str]]
# Which files an import may mean, and how one is written that means none of the project's.
_LANGUAGES: Final[Mapping[str, tuple[_Candidates, Callable[[str], str]]]] = {
    "python": (_python, str),
    "javascript": (_javascript, str),
    "typescript": (_javascript, str),
    "tsx": (_javascript, str),
    "go": (_go, lambda text: text.strip('"`')),
    "rust": (_rust, _rust_path),
    "java": (_java, _java_package),
}


def read_project(root: Path, known: Known, progress: Progress) -> Readings:
    """Yield a memory for each source file, manifest and document of a project; progress counts files.

    Raises InvalidField for a root that is no folder, or a checkout whose owner git does not trust.
    """
    top = _folder(root)
    tree = ProjectTree(top)
    listed = list_files(top)
    total = sum(isinstance(found, File) for found in listed)
    done = 0
    for found in listed:
        if isinstance(found, Skipped):
            yield found
            continue
        reading = _read(found, known, tree)
        done += 1
        progress(done, total)
        yield reading


def _folder(root: Path) -> Path:
    try:
        resolved = root.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidField(FieldError("path", "is not a folder that can be read")) from error
    if not resolved.is_dir():
        raise InvalidField(FieldError("path", "is not a folder"))
    return resolved


def _read(file: File, known: Known, tree: ProjectTree) -> Reading:
    try:
        kind = kind_of_file(file.name)
        data, written_at = read_file(file.path)
        digest = hashlib.sha256(OUTLINE_VERSION + data).hexdigest()
        if known.get(file.key) == digest:
            return Unchanged(file.key)
        return Item(file.key, digest, _drafts(file, kind, data, written_at, tree))
    except SkippedFile as skipped:
        return Skipped(file.key, skipped.reason)


def _drafts(file: File, kind: FileKind, data: bytes, written_at: float, tree: ProjectTree) -> tuple[Draft, ...]:
    text = text_of(data)
    lines = count_lines(text)
    common: dict[str, Any] = {
        "source": Source.IMPORT,
        "occurred_at": _time_text(written_at),
        "anchor": _anchor(file, data),
        "importance": IMPORTANCE_OF_TESTS if _is_test(file.key) else IMPORTANCE[kind],
    }
    facts: dict[str, Any] = {"path": file.key, "lines": lines}
    if kind is FileKind.CODE:
        check_written_by_people(text)
        return _of_code(file, text, tree, common, facts)
    common |= {"kind": Kind.DOCUMENT, "tags": ("document", str(kind), *_test_tag(file))}
    if kind is FileKind.MANIFEST:
        return _number_parts(render_manifest(file.key, file.name, text), common, facts)
    title, parts = render_prose(file.key, text)
    details = {"title": title} if title else {}
    return _number_parts(parts, {**common, "details": details}, facts)


def _of_code(
    file: File, text: str, tree: ProjectTree, common: dict[str, Any], facts: dict[str, Any]
) -> tuple[Draft, ...]:
    language = language_of(file.name)
    assert language is not None
    outline = outline_of(text.encode(), language.grammar)
    if not (outline.purpose or outline.symbols or outline.imports):
        raise SkippedFile("defines nothing")
    head = f"{file.key} · {language.name}, {facts['lines']} line{'s' if facts['lines'] != 1 else ''}"
    parts = render_outline(head, outline, resolve(outline.imports, language.grammar, file.key, tree))
    common |= {
        "kind": Kind.CODE,
        "tags": ("code", language.name.lower(), *_test_tag(file)),
        "details": {"language": language.name},
    }
    return _number_parts(parts, common, {**facts, "language": language.name})


def _number_parts(parts: Sequence[str], common: dict[str, Any], facts: dict[str, Any]) -> tuple[Draft, ...]:
    if len(parts) == 1:
        return (Draft(parts[0], metadata=facts, **common),)
    return tuple(
        Draft(part, metadata={**facts, "part": number, "parts": len(parts)}, **common)
        for number, part in enumerate(parts, 1)
    )


def _anchor(file: File, data: bytes) -> Anchor:
    """Return an anchor that can be checked; by a path that is stored otherwise than it is, no file would be found."""
    # A folder above the project may have a name that no text can hold.
    if len(file.path) > MAX_PATH_CHARS or not _is_text(file.path):
        return Anchor(file.key)
    if normalize_id(file.path) != file.path:
        return Anchor(file.path)
    return Anchor(file.path, content_hash=hashlib.sha256(data).hexdigest())


def _is_text(path: str) -> bool:
    return path.encode("utf-8", "replace").decode() == path


def _time_text(written_at: float) -> str:
    # Archives unpack files from the future, and from before there were any.
    return utc_text(datetime.fromtimestamp(min(max(written_at, 0.0), time.time()), UTC))


def _test_tag(file: File) -> tuple[str, ...]:
    return ("test",) if _is_test(file.key) else ()


def _is_test(key: str) -> bool:
    *folders, name = key.casefold().split("/")
    stem = name.partition(".")[0].split("_")
    return bool(
        _TEST_FOLDERS & set(folders)
        or _TEST_WORDS & {stem[0], stem[-1], *name.split(".")}
        or key.rpartition("/")[2].partition(".")[0].endswith(("Test", "Tests"))
    )
