"""The current state of a checkout: its paths, the words of its code, constants, build targets and commits."""

import ast
import json
import operator
import os
import re
import tomllib
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from pipeline.features.citations.history import NO_CODE
from pipeline.kernel.git.git import Git
from pipeline.kernel.git.repository import UnreadableFile, read_bounded

_KEYWORDS = (
    "(?:def|class|fn|func|function|const|let|var|type|interface|struct|enum|trait|macro_rules!|module|static"
    "|define|val)"
)
_OPERATIONS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Mult: operator.mul,
    ast.Add: operator.add,
}
_SUFFIX = re.compile(r"\s*(?:#|//|;).*$")
_NUMBER = re.compile(r"[-+]?\d[\d_]*(?:\.\d+)?")

Value = str | float | bool


def defines(line: str, name: str) -> bool:
    """Return whether a line of code surely defines a name."""
    word = re.escape(name)
    names = rf"(?:[A-Z]\w*,\s*)*{word}\s*(?:,\s*[A-Z]\w*\s*)*"
    return (
        re.search(rf"(?<![\w.])#?{_KEYWORDS}\s+(?:\([^()]*\)\s*)?(?:\w+\.)?{word}(?!\w)", line) is not None
        or re.match(rf"\s*(?:export\s+)?{names}(?::[^=:]+)?=(?!=)", line) is not None
        or re.match(rf"\s*{word}\s*:\s*[\w\"'\[\]|., ]+$", line) is not None
    )


def find_renamed(line: str, name: str, added: Iterable[str]) -> str | None:
    """Return the new name of a definition if an added line differs from the removed line in that name only."""
    around = re.split(rf"(?<!\w){re.escape(name)}(?!\w)", line, maxsplit=1)
    same = re.compile(r"([A-Za-z_]\w*)".join(map(re.escape, around)))
    found = (same.fullmatch(text) for text in added)
    return next((match[1] for match in found if match and match[1] != name), None)


def read_value(text: str | None) -> Value | None:
    """Return a literal, or a product or sum of numbers; None for any other expression, or without a text."""
    stripped = (text or "").strip()
    if stripped.lower() in ("true", "false"):
        return stripped.lower() == "true"
    try:
        return _evaluate(ast.parse(stripped, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def find_value(line: str, name: str) -> str | None:
    """Return the text of the value that a line assigns to a constant, None if it assigns none."""
    word = re.escape(name)
    keyword = r"(?:export\s+|pub\s+)?(?:(?:const|let|var|static|final|#?define)\s+)?"
    single = re.match(rf"\s*{keyword}{word}\s*(?::[^=:]+)?(?::?=|\s)\s*(.+)$", line)
    if single is not None and ("=" in line or "define" in line):
        return _trim(single[1])
    several = re.match(r"\s*([A-Z]\w*(?:,\s*[A-Z]\w*)+)\s*=\s*(.+)$", line)
    if several is None:
        return None
    names = [part.strip() for part in several[1].split(",")]
    values = [part.strip() for part in _SUFFIX.sub("", several[2]).split(",")]
    return values[names.index(name)] if name in names and len(names) == len(values) else None


def list_values(lines: Iterable[str], name: str) -> list[str | None]:
    """Return the values that lines assign to a constant; None for an assignment that cannot be compared."""
    return [find_value(line, name) for line in lines if defines(line, name)]


def _trim(text: str) -> str:
    """Return an assigned value without its comment and separators."""
    value = text.strip()
    quoted = re.match(r"""("[^"]*"|'[^']*')\s*[;,]?\s*(?:#.*|//.*)?$""", value)
    return quoted[1] if quoted else _SUFFIX.sub("", value).strip().rstrip(",")


def _evaluate(node: ast.expr) -> Value | None:
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool | str):
            return value
        return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _evaluate(node.operand)
        return -inner if isinstance(inner, float) else None
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = _evaluate(node.left), _evaluate(node.right)
        if isinstance(left, float) and isinstance(right, float):
            return _OPERATIONS[type(node.op)](left, right)
    return None


MAKEFILES = ("Makefile", "makefile", "GNUmakefile")
PACKAGES = ("package.json",)
PROJECTS = ("pyproject.toml",)
MOST_MANIFESTS = 100
_TARGETS = re.compile(r"^([\w.-]+(?:[ \t]+[\w.-]+)*)[ \t]*:(?!=)", re.MULTILINE)
_PHONY = re.compile(r"^\.PHONY[ \t]*:(.*)$", re.MULTILINE)
# Rules whose targets are only known to make.
_OPEN = re.compile(r"^(?:-?include\b|s?include\b|[^\s#:=]*%[^\n=]*:(?!=)|\.DEFAULT\b)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets of build files; those of an open set may be more."""

    names: frozenset[str] = frozenset()
    is_open: bool = True


class Tree:
    """A checkout as git and the file system show it now."""

    def __init__(self, root: Path, git: Git) -> None:
        self.root = root
        self._real = Path(os.path.realpath(root))
        self._git = git

    @cached_property
    def paths(self) -> frozenset[str]:
        """Return the paths of the files that are tracked or not ignored, and that exist."""
        listed, _ = self._git.list_paths("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        return frozenset(path for path in listed if os.path.lexists(self.root / path))

    @cached_property
    def _endings(self) -> frozenset[str]:
        """Return the last parts of every path and folder: a text may cite them from any folder."""
        endings: set[str] = set()
        for path in self.paths:
            parts = path.split("/")
            for end in range(1, len(parts) + 1):
                tail = "/" if end < len(parts) else ""
                endings.update("/".join(parts[start:end]) + tail for start in range(end))
        return frozenset(endings)

    @cached_property
    def top_folders(self) -> frozenset[str]:
        """Return the names of the folders in the root."""
        return frozenset(path.partition("/")[0] for path in self.paths if "/" in path)

    def has_path(self, name: str) -> bool:
        """Return whether a path exists: in the list of git, by its last parts, or as an ignored file."""
        return name in self._endings or self.has_on_disk(name)

    def has_on_disk(self, name: str) -> bool:
        """Return whether a path within the checkout exists."""
        real = Path(os.path.realpath(self.root / name))
        return real.is_relative_to(self._real) and os.path.lexists(real)

    def find_words(self, names: Collection[str]) -> frozenset[str]:
        """Return the names that the code contains as words."""
        if not names:
            return frozenset()
        patterns = [part for name in sorted(names) for part in ("-e", name)]
        found = self._git.search("--untracked", "-I", "-h", "-o", "-w", "-F", *patterns, "--", ".", *NO_CODE)
        return frozenset(found.split("\n")) & frozenset(names)

    def find_constants(self, names: Collection[str]) -> Mapping[str, list[str | None]]:
        """Return the values that the code assigns to each constant; None for one that cannot be compared."""
        if not names:
            return {}
        patterns = [part for name in sorted(names) for part in ("-e", name)]
        lines = self._git.search("--untracked", "-I", "-h", "-w", "-F", *patterns, "--", ".", *NO_CODE).split("\n")
        return {name: list_values((line for line in lines if name in line), name) for name in names}

    def list_targets(self) -> Targets:
        """Return the targets of all makefiles."""
        texts = self._read_manifests(lambda name: name in MAKEFILES or name.endswith(".mk"))
        names = {word for text in texts for words in _TARGETS.findall(text) for word in words.split()}
        names |= {word for text in texts for words in _PHONY.findall(text) for word in words.split()}
        return Targets(frozenset(names), not texts or any(_OPEN.search(text) for text in texts))

    def list_scripts(self) -> Targets:
        """Return the scripts of all packages of npm."""
        texts = self._read_manifests(lambda name: name in PACKAGES)
        return _list_tables(texts, json.loads, (("scripts",),))

    def list_entry_points(self) -> Targets:
        """Return the commands of all Python projects; a runner also finds those of other packages."""
        texts = self._read_manifests(lambda name: name in PROJECTS)
        tables = (("project", "scripts"), ("tool", "poetry", "scripts"), ("tool", "pdm", "scripts"))
        return _list_tables(texts, tomllib.loads, tables)

    def find_commits(self, names: Iterable[str]) -> frozenset[str]:
        """Return the abbreviated commits that the repository has; all of them if its history is incomplete."""
        wanted = frozenset(names)
        if not wanted:
            return frozenset()
        if self._git.answer("rev-parse", "--is-shallow-repository") == "true":
            return wanted
        commits = sorted(self._git.answer("rev-list", "--all", "HEAD").split("\n"))
        found = ((name, bisect_left(commits, name)) for name in wanted)
        return frozenset(name for name, place in found if place < len(commits) and commits[place].startswith(name))

    def _read_manifests(self, is_chosen: Callable[[str], bool]) -> list[str]:
        chosen = [path for path in sorted(self.paths) if is_chosen(PurePosixPath(path).name)]
        texts = []
        for path in chosen[:MOST_MANIFESTS]:
            if self.has_on_disk(path):
                try:
                    texts.append(read_bounded(self.root / path).decode("utf-8", "replace"))
                except UnreadableFile:
                    continue
        return texts


def _list_tables(texts: Sequence[str], parse: Callable[[str], Any], tables: Sequence[tuple[str, ...]]) -> Targets:
    names: set[str] = set()
    for text in texts:
        try:
            document = parse(text)
        except ValueError:
            return Targets()
        for keys in tables:
            table = document
            for key in keys:
                table = table.get(key, {}) if isinstance(table, dict) else {}
            names.update(table if isinstance(table, dict) else ())
    return Targets(frozenset(names), not texts)
