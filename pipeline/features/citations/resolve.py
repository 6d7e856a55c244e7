"""Resolve the citations of texts against a checkout, and find in its history since when broken ones are wrong.

Git runs a fixed number of times, however many citations there are. A citation is broken only if what it names
was in this repository and is gone or different, or if a rule file cites what the repository never had.
"""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TypeVar

from pipeline.features.citations.history import (
    Change,
    Finding,
    Line,
    State,
    TooMuchHistory,
    find_ended_path,
    read_changed_lines,
    read_changed_since,
    read_ended_paths,
    read_manifest_lines,
)
from pipeline.features.citations.parser import Citation, CitationKind, is_file_name
from pipeline.features.citations.tree import (
    MAKEFILES,
    PACKAGES,
    PROJECTS,
    Targets,
    Tree,
    defines,
    find_renamed,
    find_value,
    read_value,
)
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.git.git import Git

T = TypeVar("T")

RULE_FILES = frozenset({"MEMORY.md", "CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "GEMINI.md"})
_MANIFESTS = {"make": MAKEFILES, "script": PACKAGES, "entry": PROJECTS}
_NAMED_IN_CODE = (CitationKind.SYMBOL, CitationKind.CONSTANT)


def resolve_citations(
    root: Path, texts: Sequence[Sequence[Citation]], *, are_files: bool = False
) -> list[list[Finding]]:
    """Resolve the citations of each text; citations of rule files may also dangle.

    Raises InvalidField if git is missing, rejects the folder, fails or takes too long.
    """
    resolver = _Resolver(root, [citation for citations in texts for citation in citations], are_files=are_files)
    return [[resolver.resolve(citation) for citation in citations] for citations in texts]


def list_rule_files(root: Path) -> list[str]:
    """List the files of a checkout that tell agents what is so: rules and memories."""
    tree = Tree(root, Git(root))
    return sorted(path for path in tree.paths if PurePosixPath(path).name in RULE_FILES and tree.has_on_disk(path))


def find_changed_since(
    root: Path, commits: Sequence[Sequence[str]], findings: Sequence[Sequence[Finding]]
) -> list[dict[str, tuple[str, ...] | None]]:
    """Return for each text the cited files that changed after each of its commits.

    None stands for a commit that the repository lacks. Without an answer of git within its limits, no commit is named.
    """
    wanted = {commit for of_text in commits for commit in of_text}
    cited = [
        [item.citation.name for item in of_text if item.citation.kind is CitationKind.PATH] for of_text in findings
    ]
    try:
        names = {name for of_text in cited for name in of_text}
        changed = read_changed_since(Git(root), wanted, names) if wanted else {}
    except TooMuchHistory:
        return [{} for _ in commits]
    except InvalidField:
        # A repository without commits.
        changed = {}
    return [
        {
            commit: tuple(name for name in names if name in changed[commit]) if commit in changed else None
            for commit in of_text
        }
        for of_text, names in zip(commits, cited, strict=True)
    ]


class _Resolver:
    """A checkout's state and history, each read when the first citation needs it."""

    def __init__(self, root: Path, citations: Sequence[Citation], *, are_files: bool) -> None:
        self._git = Git(root)
        self._tree = Tree(root, self._git)
        self._citations = [citation for citation in citations if citation.is_current]
        self._are_files = are_files
        self._has_commits = self._git.has_commits()

    def resolve(self, citation: Citation) -> Finding:
        """Return the state of a citation."""
        judge = {
            CitationKind.PATH: self._resolve_path,
            CitationKind.SYMBOL: self._resolve_symbol,
            CitationKind.CONSTANT: self._resolve_constant,
            CitationKind.COMMAND: self._resolve_command,
            CitationKind.COMMIT: self._resolve_commit,
        }[citation.kind]
        return judge(citation) if citation.is_current else Finding(citation, State.UNKNOWN)

    def _resolve_path(self, citation: Citation) -> Finding:
        name = citation.name
        if self._tree.has_path(name):
            return Finding(citation, State.HOLDS)
        if change := find_ended_path(self._ended_paths, name):
            now = self._follow(change)
            return Finding(citation, State.RENAMED if now else State.GONE, change, now)
        # A path below a folder of the root is meant as one of this repository.
        dangles = self._are_files and is_file_name(name) and name.partition("/")[0] in self._tree.top_folders
        return Finding(citation, State.DANGLING if dangles else State.UNKNOWN)

    def _follow(self, change: Change) -> str | None:
        """Return the present name of a renamed file, None if that is gone too."""
        seen: set[str] = set()
        while change.now is not None and change.now not in seen:
            if change.now in self._tree.paths:
                return change.now
            seen.add(change.now)
            change = self._ended_paths.get(change.now, Change("", ""))
        return None

    def _resolve_symbol(self, citation: Citation) -> Finding:
        if citation.name in self._present_words:
            return Finding(citation, State.HOLDS)
        if self._is_of_standard_library(citation):
            return Finding(citation, State.UNKNOWN)
        return self._find_end(citation, self._changed_lines.get(citation.name, []))

    def _is_of_standard_library(self, citation: Citation) -> bool:
        """Return whether a name is qualified by a module of Python that the repository does not have."""
        module, dot, _ = citation.text.partition(".")
        is_standard = bool(dot) and module in sys.stdlib_module_names
        return is_standard and not (self._tree.has_path(f"{module}.py") or self._tree.has_path(f"{module}/"))

    def _find_end(self, citation: Citation, lines: Sequence[Line]) -> Finding:
        """Return since when a name that the code lacks is gone: it must have been defined there."""
        removed = [line for line in lines if not line.is_added]
        if not removed or not any(defines(line.text, citation.name) for line in removed):
            return Finding(citation, State.UNKNOWN)
        last = removed[0].change
        definitions = [line for line in removed if line.change == last and defines(line.text, citation.name)]
        renamed = (find_renamed(line.text, citation.name, line.added_with) for line in definitions)
        now = next((name for name in renamed if name is not None), None)
        return Finding(citation, State.GONE if now is None else State.RENAMED, last, now)

    def _resolve_constant(self, citation: Citation) -> Finding:
        stated = read_value(citation.value)
        texts = self._present_constants.get(citation.name, [])
        values = list(map(read_value, texts))
        if stated is not None and stated in values:
            return Finding(citation, State.HOLDS)
        if citation.name not in self._present_words:
            found = self._find_end(citation, self._changed_lines.get(citation.name, []))
            return found if self._was_value(citation) else replace(found, state=State.UNKNOWN)
        # Several definitions may be different constants, and an expression may have any value.
        if stated is None or len(set(values)) != 1 or values[0] is None or type(values[0]) is not type(stated):
            return Finding(citation, State.UNKNOWN)
        if not self._was_value(citation) and not self._are_files:
            return Finding(citation, State.UNKNOWN)
        return Finding(citation, State.CHANGED, self._find_change(citation), texts[0])

    def _was_value(self, citation: Citation) -> bool:
        """Return whether a constant once had the value that a text states."""
        stated = read_value(citation.value)
        lines = self._changed_lines.get(citation.name, [])
        return stated is not None and any(_value_of(line, citation.name) == stated for line in lines)

    def _find_change(self, citation: Citation) -> Change | None:
        """Return the newest commit that replaced the stated value of a constant."""
        stated = read_value(citation.value)
        lines = self._changed_lines.get(citation.name, [])
        ended = (line for line in lines if not line.is_added and _value_of(line, citation.name) == stated)
        return next((line.change for line in ended), None)

    def _resolve_command(self, citation: Citation) -> Finding:
        tool, _, name = citation.name.partition(" ")
        targets = self._targets[tool]
        if name in targets.names:
            return Finding(citation, State.HOLDS)
        if targets.is_open:
            return Finding(citation, State.UNKNOWN)
        lines = [
            line for line in self._manifest_lines.get(name, []) if PurePosixPath(line.path).name in _MANIFESTS[tool]
        ]
        for line in lines:
            if not line.is_added and _is_target(tool, name, line.text):
                return Finding(citation, State.GONE, line.change)
        # Runners of Python also run the commands of installed packages.
        dangles = self._are_files and tool != "entry"
        return Finding(citation, State.DANGLING if dangles else State.UNKNOWN)

    def _resolve_commit(self, citation: Citation) -> Finding:
        if citation.name in self._present_commits:
            return Finding(citation, State.HOLDS)
        # A memory may cite a commit of another repository.
        return Finding(citation, State.DANGLING if self._are_files else State.UNKNOWN)

    def _names(self, *kinds: CitationKind) -> frozenset[str]:
        return frozenset(citation.name for citation in self._citations if citation.kind in kinds)

    @cached_property
    def _present_words(self) -> frozenset[str]:
        return self._tree.find_words(self._names(*_NAMED_IN_CODE))

    @cached_property
    def _present_constants(self) -> dict[str, list[str | None]]:
        return dict(self._tree.find_constants(self._names(CitationKind.CONSTANT)))

    @cached_property
    def _present_commits(self) -> frozenset[str]:
        return self._tree.find_commits(self._names(CitationKind.COMMIT)) if self._has_commits else frozenset()

    @cached_property
    def _targets(self) -> dict[str, Targets]:
        tree = self._tree
        return {"make": tree.list_targets(), "script": tree.list_scripts(), "entry": tree.list_entry_points()}

    @cached_property
    def _ended_paths(self) -> dict[str, Change]:
        return self._read_history(lambda: read_ended_paths(self._git))

    @cached_property
    def _changed_lines(self) -> dict[str, list[Line]]:
        names = self._names(CitationKind.SYMBOL) - self._present_words
        names |= frozenset(citation.name for citation in self._citations if self._needs_history(citation))
        return self._read_history(lambda: read_changed_lines(self._git, names))

    def _read_history(self, read: Callable[[], dict[str, T]]) -> dict[str, T]:
        """Return what a function reads of the history; nothing without commits, or if it is too large."""
        try:
            return read() if self._has_commits else {}
        except TooMuchHistory:
            return {}

    def _needs_history(self, citation: Citation) -> bool:
        if citation.kind is not CitationKind.CONSTANT:
            return False
        values = map(read_value, self._present_constants.get(citation.name, []))
        return read_value(citation.value) not in values

    @cached_property
    def _manifest_lines(self) -> dict[str, list[Line]]:
        cited = [name.partition(" ") for name in self._names(CitationKind.COMMAND)]
        names = {name for tool, _, name in cited if name not in self._targets[tool].names}
        manifests = [name for names_of_tool in _MANIFESTS.values() for name in names_of_tool]
        return self._read_history(lambda: read_manifest_lines(self._git, names, manifests))


def _is_target(tool: str, name: str, line: str) -> bool:
    """Return whether a line of a build file defines a target."""
    word = re.escape(name)
    target = rf"(?:[\w.-]+[ \t]+)*{word}(?:[ \t]+[\w.-]+)*[ \t]*:(?!=)"
    form = target if tool == "make" else rf"\s*[\"']?{word}[\"']?\s*[:=]"
    return re.match(form, line) is not None


def _value_of(line: Line, name: str) -> object:
    return read_value(find_value(line.text, name)) if defines(line.text, name) else None
