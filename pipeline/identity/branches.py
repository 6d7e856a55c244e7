"""Find the branch that is checked out in a folder from git's files, without git: a prompt waits for it."""

import os
from pathlib import Path

from pipeline.errors import InvalidField
from pipeline.identity.repository import (
    Repository,
    UnreadableFile,
    exists,
    head_of_folder,
    open_repository,
    parse_config,
    printable,
    read_bounded,
    root_of_folder,
)
from pipeline.records import MAX_BRANCH_CHARS, OWNED
from pipeline.records.branches import SideBranch

# Usual names of a default branch, if neither the remote nor the configuration names one.
USUAL_NAMES = ("main", "master", "trunk", "develop")
_HEADS, _REMOTE = "refs/heads/", "refs/remotes/origin/"
# During a rebase HEAD is detached; these files name the branch.
_REBASED = ("rebase-merge/head-name", "rebase-apply/head-name")


def find_side_branch(folder: Path) -> SideBranch | None:
    """Return the branch that is checked out in a folder.

    Return None for the default branch, a detached HEAD, no repository, or a repository without a default branch.
    """
    try:
        root = root_of_folder(folder)
        if root is None:
            return None
        repository = open_repository(root)
        name = _find_checked_out(repository)
        default = None if name is None else find_default_branch(repository)
    except (InvalidField, UnreadableFile, OSError, RuntimeError):
        return None
    if name is None or default is None or name == default or not is_usable_name(name):
        return None
    return SideBranch(name, str(repository.common_dir), default, head_of_folder(root) or "")


def is_usable_name(name: str) -> bool:
    """Return whether a branch name can be stored as it is."""
    return 0 < len(name) <= MAX_BRANCH_CHARS and printable(name) == name and OWNED not in name


def find_default_branch(repository: Repository) -> str | None:
    """Return the name of the default branch: that of the remote, else the configured one, else a usual name."""
    remote = _read_line(repository.common_dir / f"{_REMOTE}HEAD")
    if remote.startswith(f"ref: {_REMOTE}"):
        return remote.removeprefix(f"ref: {_REMOTE}")
    packed = _read_text(repository.common_dir / "packed-refs")
    names = (*_list_configured(repository), *USUAL_NAMES)
    return next((name for name in names if _has_branch(repository, name, packed)), None)


def _find_checked_out(repository: Repository) -> str | None:
    """Return the name of the branch that is checked out or is being rebased."""
    for file in ("HEAD", *_REBASED):
        line = _read_line(repository.git_dir / file).removeprefix("ref:").strip()
        # The reftable format stores HEAD elsewhere and leaves `.invalid` here.
        if line.startswith(_HEADS) and line != f"{_HEADS}.invalid":
            return line.removeprefix(_HEADS)
    return None


def _list_configured(repository: Repository) -> list[str]:
    settings = parse_config(_read_text(repository.common_dir / "config"))
    return [value for section, key, value in settings if (section, key) == (("init", ""), "defaultbranch")]


def _has_branch(repository: Repository, name: str, packed: str) -> bool:
    if name in ("", ".", "..") or ".." in name or os.path.isabs(name):  # noqa: PTH117 - a name, not a path
        return False
    is_loose = exists(repository.common_dir / _HEADS / name)
    return is_loose or any(line.endswith(f" {_HEADS}{name}") for line in packed.splitlines())


def _read_line(file: Path) -> str:
    return _read_text(file).strip().partition("\n")[0]


def _read_text(file: Path) -> str:
    try:
        return read_bounded(file).decode("utf-8", "replace")
    except UnreadableFile:
        return ""
