"""A project's files in order, without those that git would leave out and those that nobody wants."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pipeline.identity.files import Unreadable, read_bounded
from pipeline.identity.git import open_repository, root_of_folder
from pipeline.ingest.items import Skipped
from pipeline.ingest.project.gitignore import Level, comparable, is_left_out, read_rules

MAX_KEY_CHARS: Final = 1024

IGNORED: Final = "ignored by git"
UNWANTED: Final = "folder of dependencies or caches"
ANOTHER: Final = "another repository"
LINK: Final = "symbolic link"
SPECIAL: Final = "not a regular file"
UNREADABLE: Final = "cannot be read"
BAD_NAME: Final = "name is not valid UTF-8"
LONG_NAME: Final = f"path longer than {MAX_KEY_CHARS} characters"

_RULES: Final = ".gitignore"
_GIT: Final = ".git"
# What no one wants to be told of even where nobody ignored it. Folders such as `build`, `dist`, `target` or `vendor`
# may well hold what people wrote.
_UNWANTED_NAMES: Final = frozenset(
    """
    node_modules bower_components jspm_packages site-packages __pycache__ .venv .tox .nox .eggs .direnv .hg .svn .jj
    .mypy_cache .pytest_cache .ruff_cache .hypothesis .ipynb_checkpoints .gradle .terraform .next .nuxt .svelte-kit
    .parcel-cache .turbo .yarn .pnpm-store .cargo .idea .vs .cache
    """.split()  # noqa: SIM905 - readable as words
)
# What tells such a folder by whatever name: a virtual environment, a cache (as cargo marks `target`), Go's copies.
_MARKS: Final = frozenset({"pyvenv.cfg", "CACHEDIR.TAG", "modules.txt"})
_MARKED_ONLY_IN: Final = {"modules.txt": "vendor"}


@dataclass(frozen=True, slots=True)
class File:
    """A file's key, which is its POSIX path below the root, and its place."""

    key: str
    path: str

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder: its place, key and comparable path (both end with a slash unless empty), and the rules above it."""

    path: str
    key: str
    compared: str
    levels: tuple[Level, ...]
    in_repository: bool


def walk(root: Path) -> Iterator[File | Skipped]:
    """Yield every file below a resolved root in the order of names, and what is left out with its reason."""
    waiting: list[Iterator[File | Skipped | _Folder]] = [_entries(_first(root))]
    while waiting:
        found = next(waiting[-1], None)
        if found is None:
            waiting.pop()
        elif isinstance(found, _Folder):
            waiting.append(_entries(found))
        else:
            yield found


def _first(root: Path) -> _Folder:
    """Return the root with the rules of the repository around it."""
    top = root_of_folder(root)
    if top is None:
        return _Folder(str(root), "", "", (), in_repository=False)
    levels = _own_rules(top, 0)
    compared = ""
    for folder in reversed((root, *root.parents)):
        if folder != root and folder.is_relative_to(top):
            if folder != top:
                compared += f"{comparable(folder.name)}/"
            levels = (*_level(folder / _RULES, len(compared)), *levels)
    below = "" if root == top else f"{compared}{comparable(root.name)}/"
    return _Folder(str(root), "", below, levels, in_repository=True)


def _own_rules(top: Path, start: int) -> tuple[Level, ...]:
    """Return the rules that a repository keeps for itself; one whose `.git` is broken has none."""
    try:
        return _level(open_repository(top).common_dir / "info" / "exclude", start)
    except Unreadable:
        return ()


def _level(file: Path, start: int) -> tuple[Level, ...]:
    # Git follows no link to rules.
    if file.is_symlink() or not file.is_file():
        return ()
    try:
        return (Level(read_rules(read_bounded(file)), start),)
    except Unreadable:
        return ()


def _entries(folder: _Folder) -> Iterator[File | Skipped | _Folder]:
    try:
        with os.scandir(folder.path) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError:
        yield Skipped(_shown(folder.key) or ".", UNREADABLE)
        return
    names = {entry.name for entry in entries}
    if folder.key:
        own = folder.key.rstrip("/").rpartition("/")[2]
        if any(_MARKED_ONLY_IN.get(mark, own) == own for mark in _MARKS & names):
            yield Skipped(_shown(folder.key), UNWANTED)
            return
        if _GIT in names and folder.in_repository:
            yield Skipped(_shown(folder.key), ANOTHER)
            return
    folder = _with_rules(folder, names)
    for entry in entries:
        if entry.name != _GIT:
            yield _found(entry, folder)


def _with_rules(folder: _Folder, names: set[str]) -> _Folder:
    """Return a folder with the rules that stand in it; a repository of its own begins anew."""
    place, levels, start = Path(folder.path), folder.levels, len(folder.compared)
    if _GIT in names and not folder.in_repository:
        levels = _own_rules(place, start)
    if _RULES in names:
        levels = (*_level(place / _RULES, start), *levels)
    in_repository = folder.in_repository or _GIT in names
    return _Folder(folder.path, folder.key, folder.compared, levels, in_repository)


def _found(entry: os.DirEntry[str], folder: _Folder) -> File | Skipped | _Folder:
    key = f"{folder.key}{entry.name}"
    try:
        is_link, is_folder = entry.is_symlink(), entry.is_dir(follow_symlinks=False)
        is_file = entry.is_file(follow_symlinks=False)
    except OSError:
        return Skipped(_shown(key), UNREADABLE)
    compared = f"{folder.compared}{comparable(entry.name)}"
    shown = f"{_shown(key)}/" if is_folder else _shown(key)
    reason = None
    if is_left_out(compared, folder.levels, is_folder=is_folder):
        reason = IGNORED
    elif is_folder and entry.name in _UNWANTED_NAMES:
        reason = UNWANTED
    elif is_link:
        # What it leads to within the project is met at its own place; what lies outside is not the project's.
        reason = LINK
    elif not is_folder and not is_file:
        reason = SPECIAL
    elif key != shown.removesuffix("/"):
        reason = LONG_NAME if len(key) > MAX_KEY_CHARS else BAD_NAME
    if reason is not None:
        return Skipped(shown, reason)
    if is_folder:
        return _Folder(entry.path, f"{key}/", f"{compared}/", folder.levels, folder.in_repository)
    return File(key, entry.path)


def _shown(key: str) -> str:
    """Return a key that can be stored, whatever stands in a file's name."""
    return key.encode("utf-8", "replace").decode()[:MAX_KEY_CHARS]
