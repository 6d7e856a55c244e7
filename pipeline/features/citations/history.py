"""Read from a repository's history when paths and definitions ended: one pass of `git log` for each.

Output is limited in bytes and time; what lies beyond the limits is unknown.
"""

import re
import time
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pipeline.features.citations.parser import Citation, CitationKind
from pipeline.kernel.git.git import Git

SHORT_COMMIT = 10
# Names, paths and numbers: text without spaces.
_PLAIN = re.compile(r"[\w./+-]{1,120}")


class State(StrEnum):
    """Whether a citation is correct. `unknown` means that there is no proof of an error."""

    HOLDS = "holds"
    GONE = "gone"
    RENAMED = "renamed"
    CHANGED = "changed"
    DANGLING = "dangling"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Change:
    """A commit that ended something, its date, and the new name or value if there is one."""

    commit: str
    date: str
    now: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A citation, its state, the commit since which it is wrong, and what replaced it."""

    citation: Citation
    state: State
    change: Change | None = None
    now: str | None = None

    @property
    def is_broken(self) -> bool:
        """Return whether the citation is surely wrong."""
        return self.state not in (State.HOLDS, State.UNKNOWN)

    def describe(self) -> str:
        """Return what is wrong, and since when."""
        # Values are free text: a prompt contains them only in quotation marks.
        text = self.citation.name if self.citation.kind is CitationKind.CONSTANT else self.citation.text
        now = f", now {self.now}" if self.now is not None and _PLAIN.fullmatch(self.now) else ""
        if self.change is not None:
            return f"{text}: no longer true since {self.change.commit[:SHORT_COMMIT]}{now}"
        return f"{text}: {'another value' if self.state is State.CHANGED else 'not'} in the repository{now}"


MAX_BYTES = 192 * 1024 * 1024
MAX_SECONDS = 60.0
# Names in one expression of git.
MOST_NAMES = 100
MOST_LINES = 50
_COMMIT = "\x01"
# The line before the names of the files that differ between two trees.
_TREES = re.compile(r"([0-9a-f]{40,64}) [0-9a-f]{40,64}\n")
_FORMAT = "--format=%x01%H %cs"
# Texts about the code, and generated files.
NO_CODE = (
    *(f":(exclude,glob,icase)**/*.{ext}" for ext in ("md", "mdx", "rst", "txt", "adoc", "lock", "svg", "ipynb", "po")),
    ":(exclude,glob,icase)**/package-lock.json",
    ":(exclude,glob,icase)**/*changelog*",
)


class TooMuchHistory(Exception):
    """The history is larger than the limits."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line that a commit added or removed, and the lines that the commit added in its place."""

    change: Change
    path: str
    is_added: bool
    text: str
    added_with: list[str] = field(compare=False)


def find_ended_path(ended: Mapping[str, Change], name: str) -> Change | None:
    """Return the newest end of a path, or of all paths in a folder, by its full name or its last parts."""
    if name.endswith("/"):
        change = next((change for path, change in ended.items() if f"/{name}" in f"/{path}"), None)
        return None if change is None else Change(change.commit, change.date)
    return ended.get(name) or next((change for path, change in ended.items() if path.endswith(f"/{name}")), None)


def read_ended_paths(git: Git) -> dict[str, Change]:
    """Read the last commit that deleted or renamed each path, newest first; raise TooMuchHistory beyond the limits."""
    ended: dict[str, Change] = {}
    commit, date = "", ""
    pieces = _read_pieces(git, "log", "-z", "-M", "-l400", "--diff-filter=DR", "--name-status", _FORMAT, "HEAD", "--")
    for piece in pieces:
        status = piece.lstrip("\n")
        if status.startswith(_COMMIT):
            commit, _, date = status[1:].partition(" ")
        elif status.startswith("R"):
            ended.setdefault(next(pieces, ""), Change(commit, date, next(pieces, "")))
        elif status:
            ended.setdefault(next(pieces, ""), Change(commit, date))
    return ended


def read_changed_lines(git: Git, names: Collection[str]) -> dict[str, list[Line]]:
    """Read the changed lines of code that contain each name, newest first; raise TooMuchHistory beyond the limits."""
    if not names:
        return {}
    chosen = sorted(names)[:MOST_NAMES]
    # Only words get here: nothing in the expression needs an escape.
    pickaxe = f"-G({'|'.join(chosen)})"
    return _collect(git, chosen, (pickaxe, "HEAD", "--", ".", *NO_CODE))


def read_manifest_lines(git: Git, names: Collection[str], manifests: Collection[str]) -> dict[str, list[Line]]:
    """Read the changed lines of build files that contain each name, newest first."""
    if not names:
        return {}
    return _collect(git, sorted(names)[:MOST_NAMES], ("HEAD", "--", *(f":(glob)**/{name}" for name in manifests)))


def read_changed_since(git: Git, commits: Collection[str], names: Collection[str]) -> dict[str, frozenset[str]]:
    """Read which of some files changed between each commit and HEAD; commits that the repository lacks are left out.

    A name is a path or its last parts; a commit may be abbreviated. Git runs three times, however many commits there
    are. Raises TooMuchHistory beyond the limits.
    """
    trees, head = _find_trees(git, commits), git.answer("rev-parse", "HEAD^{tree}")
    wanted, tree = frozenset(names), ""
    changed: dict[str, set[str]] = {tree: set() for tree in trees.values()}
    pairs = "".join(f"{tree} {head}\n" for tree in changed)
    for piece in _read_pieces(git, "diff-tree", "--stdin", "-r", "-z", "--name-only", "--no-renames", stdin=pairs):
        path = piece
        while (header := _TREES.match(path)) is not None:
            tree, path = header[1], path[header.end() :]
        parts = path.split("/")
        endings = ("/".join(parts[start:]) for start in range(len(parts)))
        # The name of a file may look like the line with two trees.
        changed.get(tree, set()).update(ending for ending in endings if ending in wanted)
    return {commit: frozenset(changed[tree]) for commit, tree in trees.items()}


def _find_trees(git: Git, commits: Collection[str]) -> dict[str, str]:
    """Return the tree of each commit that the repository has."""
    lines = _read_pieces(git, "log", "--format=%H %T", "--all", "HEAD", "--", separator=b"\n")
    known = sorted((commit, tree) for commit, _, tree in (line.partition(" ") for line in lines))
    trees: dict[str, str] = {}
    for commit in commits:
        place = bisect_left(known, (commit, ""))
        if place < len(known) and known[place][0].startswith(commit):
            trees[commit] = known[place][1]
    return trees


def _collect(git: Git, names: Collection[str], chosen: tuple[str, ...]) -> dict[str, list[Line]]:
    lines: dict[str, list[Line]] = {name: [] for name in names}
    word = re.compile(rf"(?<![\w])(?:{'|'.join(map(re.escape, names))})(?![\w])")
    for line in _read_lines(git, chosen):
        for name in set(word.findall(line.text)):
            if len(lines[name]) < MOST_LINES:
                lines[name].append(line)
    return lines


def _read_lines(git: Git, chosen: tuple[str, ...]) -> Iterator[Line]:
    change, path, added = Change("", ""), "", list[str]()
    log = ("log", "-p", "-U0", "-M", "-l400", _FORMAT, *chosen)
    for text in _read_pieces(git, *log, separator=b"\n"):
        if text.startswith(_COMMIT):
            commit, _, date = text[1:].partition(" ")
            change = Change(commit, date)
        elif text.startswith("@@ "):
            added = []
        elif text.startswith(("--- a/", "+++ b/")):
            path = text[6:]
        elif text.startswith(("+", "-")) and not text.startswith(("--- /dev/null", "+++ /dev/null")):
            if text[0] == "+":
                added.append(text[1:])
            yield Line(change, path, text[0] == "+", text[1:], added)


def _read_pieces(git: Git, *arguments: str, separator: bytes = b"\0", stdin: str = "") -> Iterator[str]:
    deadline = time.monotonic() + MAX_SECONDS
    size, rest = 0, b""
    with git.output(*arguments, stdin=stdin) as stream:
        while block := stream.read(1 << 18):
            size += len(block)
            if size > MAX_BYTES or time.monotonic() > deadline:
                raise TooMuchHistory
            *pieces, rest = (rest + block).split(separator)
            yield from (piece.decode("utf-8", "replace") for piece in pieces)
    if rest:
        yield rest.decode("utf-8", "replace")
