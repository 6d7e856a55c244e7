"""Find the branch that is checked out in a folder from git's files, without git, and the branches of a checkout."""

import os
from pathlib import Path

from pipeline.kernel.errors import InvalidField
from pipeline.kernel.git.git import Git
from pipeline.kernel.git.repository import (
    Repository,
    UnreadableFile,
    branch_of_folder,
    exists,
    open_repository,
    parse_config,
    read_bounded,
    root_of_folder,
)

# Usual names of a default branch, if neither the remote nor the configuration names one.
USUAL_NAMES = ("main", "master", "trunk", "develop")
_HEADS, _REMOTES, _ORIGIN = "refs/heads/", "refs/remotes/", "refs/remotes/origin/"


def find_side_branch(folder: Path) -> str | None:
    """Return the branch that is checked out in a folder.

    Return None for the default branch, a detached HEAD, no repository, or a repository without a default branch.
    """
    if not folder.is_absolute():
        return None
    try:
        root, name = root_of_folder(folder), branch_of_folder(folder)
        default = None if root is None else _find_default_branch(open_repository(root))
    except (InvalidField, UnreadableFile, OSError, RuntimeError):
        return None
    return None if default in (None, name) else name


def list_branches(root: Path) -> set[str]:
    """List the branches of a checkout, and those of its remotes as they were fetched last."""
    listed = Git(root).answer("for-each-ref", "--format=%(refname)", _HEADS, _REMOTES).splitlines()
    return {
        ref.removeprefix(_HEADS) if ref.startswith(_HEADS) else ref.removeprefix(_REMOTES).partition("/")[2]
        for ref in listed
    }


def _find_default_branch(repository: Repository) -> str | None:
    """Return the name of the default branch: that of the remote, else the configured one, else a usual name."""
    remote = _read_text(repository.common_dir / f"{_ORIGIN}HEAD").strip().partition("\n")[0]
    if remote.startswith(f"ref: {_ORIGIN}"):
        return remote.removeprefix(f"ref: {_ORIGIN}")
    packed = _read_text(repository.common_dir / "packed-refs")
    settings = parse_config(_read_text(repository.common_dir / "config"))
    configured = [value for section, key, value in settings if (section, key) == (("init", ""), "defaultbranch")]
    return next((name for name in (*configured, *USUAL_NAMES) if _has_branch(repository, name, packed)), None)


def _has_branch(repository: Repository, name: str, packed: str) -> bool:
    if name in ("", ".") or ".." in name or os.path.isabs(name):  # noqa: PTH117 - a name, not a path
        return False
    is_loose = exists(repository.common_dir / _HEADS / name)
    return is_loose or any(line.endswith(f" {_HEADS}{name}") for line in packed.splitlines())


def _read_text(file: Path) -> str:
    try:
        return read_bounded(file).decode("utf-8", "replace")
    except UnreadableFile:
        return ""
