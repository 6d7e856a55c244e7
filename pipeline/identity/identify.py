"""The rules, strongest first: explicit, environment, file, git remote, git directory, path."""

import hashlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from config.paths import WORKSPACE_ID, is_workspace_id
from pipeline.errors import FieldError, InvalidField
from pipeline.identity.files import Unreadable, shown, upwards
from pipeline.identity.git import Repository, open_repository, remote_of, root_of_folder
from pipeline.identity.override import Override, Split, nearest_override
from pipeline.identity.place import Place, place_of_path, place_of_remote

SLUG_CHARS = 48

Rule = Literal["explicit", "environment", "file", "git-remote", "git", "path"]


@dataclass(frozen=True, slots=True)
class Identity:
    """A folder's workspace id, the rule that gave it, and why; `problem` names a `.reverie.toml` that was left out."""

    id: str
    rule: Rule
    detail: str
    problem: FieldError | None = None


def identify(
    folder: Path, *, explicit: str | None = None, environment: str | None = None, split: Split = "none"
) -> Identity:
    """Return the identity of a folder: same files, same answer.

    `split` holds where no `.reverie.toml` says another. Git files that cannot be read lead to the next rule. Raises
    InvalidField for a path that cannot be followed, or a given id that is none.
    """
    if explicit is not None:
        return Identity(_checked(explicit, "workspace"), "explicit", "named in the call")
    if environment is not None:
        return Identity(_checked(environment, "REVERIE_WORKSPACE"), "environment", "REVERIE_WORKSPACE names it")
    own, problem = _override(folder)
    if own is not None and own.workspace is not None:
        return Identity(own.workspace, "file", f"{shown(own.file)} names it")
    derived = _derived(folder, (own.split if own else None) or split)
    if problem is None:
        return derived
    left_out = f"{derived.detail}; {shown(problem.loc)} is left out: {problem.msg}"
    return replace(derived, detail=left_out, problem=problem)


def _checked(name: str, loc: str) -> str:
    if not is_workspace_id(name):
        raise InvalidField(FieldError(loc, f"must match {WORKSPACE_ID.pattern}"))
    return name


def _override(folder: Path) -> tuple[Override | None, FieldError | None]:
    try:
        return nearest_override(folder), None
    except Unreadable as error:
        return None, FieldError(shown(error.file), error.reason)


def _derived(folder: Path, split: Split) -> Identity:
    root = root_of_folder(folder)
    if root is None:
        place = upwards(folder)[0]
        return _by_path(place, f"{shown(place)} is in no git repository")
    try:
        repository = open_repository(root)
    except Unreadable as error:
        return _by_path(root, f"{shown(root)} by its path, for {error}")
    if split == "worktree":
        return _identity(place_of_path(root), "git", f"worktree {shown(root)}, split by worktree")
    if split == "clone":
        return _by_directory(repository, "split by clone")
    return _by_remote(repository)


def _by_remote(repository: Repository) -> Identity:
    try:
        remote = remote_of(repository)
    except Unreadable as error:
        return _by_directory(repository, f"its remotes are unknown, for {error}")
    if remote is None:
        return _by_directory(repository, "it has no remote")
    # A linked worktree stands elsewhere: a relative address is read from the place that all worktrees share.
    common = repository.common_dir
    place = place_of_remote(remote.url, common.parent if common.name == ".git" else common)
    if place is None:
        return _by_directory(repository, f"the address of its remote {shown(remote.name)} names no place")
    return _identity(place, "git-remote", f"remote {shown(remote.name)} of {shown(common)} is {shown(place.key)}")


def _by_directory(repository: Repository, why: str) -> Identity:
    common = repository.common_dir
    return _identity(place_of_path(common), "git", f"git directory {shown(common)}, {why}")


def _by_path(place: Path, why: str) -> Identity:
    return _identity(Place(str(place), place.name), "path", why)


def _identity(place: Place, rule: Rule, detail: str) -> Identity:
    slug = re.sub(r"[^a-z0-9]+", "-", place.name.lower()).strip("-")[:SLUG_CHARS] or "root"
    return Identity(f"{slug}-{hashlib.sha256(os.fsencode(place.key)).hexdigest()[:8]}", rule, detail)
