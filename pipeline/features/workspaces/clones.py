"""Clones that have memories: a clone keeps its workspace when its remote or its folder changes.

A clone is recognized by a file that git writes once per clone, so a copy or another clone is never taken for it. Two
clones share a workspace if they have the remote `origin` in common and no different first commit.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

from pipeline.kernel.errors import InvalidField
from pipeline.kernel.git.git import Git
from pipeline.kernel.git.repository import Repository, UnreadableFile, exists, head_of_repository, read_start
from pipeline.kernel.store.atomic_files import lock_file, replace_file

# Clones of thousands of repositories must not fill the data directory.
MAX_CLONES = 1000
# Files that git writes when it creates a clone, and never again.
_BIRTH_FILES = ("description", "info/exclude")
_ZEROS = b"0" * 40
_CLONED = b"\tclone: "


@dataclass(frozen=True, slots=True)
class Clone:
    """A clone, and the workspace that it uses.

    `mark` identifies the clone wherever it is moved; `remote` is the location of its remote. `root` is its first
    commit: empty without commits, None if it cannot be found, as in a shallow clone.
    """

    git_dir: str
    mark: str
    remote: str
    workspace: str
    root: str | None = None

    @property
    def exists(self) -> bool:
        """Return whether there still is a repository at the place of the clone."""
        return exists(Path(self.git_dir, "HEAD"))


class Clones:
    """The clones with memories in a data directory, in one private file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def list_all(self) -> tuple[Clone, ...]:
        """List the clones, the latest first."""
        try:
            status = self._file.stat()
        except FileNotFoundError:
            return ()
        return _read_version(self._file, status.st_ino, status.st_size, status.st_mtime_ns)

    def record(self, choice: "CloneChoice") -> None:
        """Record the workspace of a clone, in place of an earlier record about it."""
        clone = choice.clone
        if any(known.git_dir == clone.git_dir and replace(known, root=None) == clone for known in self.list_all()):
            return
        added = clone if choice.repository is None else replace(clone, root=find_root(choice.repository))
        with lock_file(self._file):
            others = [known for known in self.list_all() if not _is_replaced(known, added)]
            replace_file(self._file, json.dumps([asdict(known) for known in (added, *others)][:MAX_CLONES], indent=1))


@lru_cache(maxsize=8)
def _read_version(file: Path, *_version: int) -> tuple[Clone, ...]:
    return tuple(Clone(**record) for record in json.loads(file.read_bytes()))


def _is_replaced(known: Clone, added: Clone) -> bool:
    if added.mark and known.mark == added.mark:
        return True
    # A clone that was moved away keeps its record when another one takes its place.
    is_other = bool(known.mark and added.mark) and known.workspace != added.workspace
    return known.git_dir == added.git_dir and not is_other


@dataclass(frozen=True, slots=True)
class RemoteLocation:
    """The location of a clone's remote, the workspace id that follows from it, and whether it is `origin`."""

    key: str
    workspace: str
    is_origin: bool


@dataclass(frozen=True, slots=True)
class ClonePlaces:
    """The workspace ids that follow from a clone's remote, its path, and from its path if another clone uses that."""

    remote: RemoteLocation | None
    path: str
    reused_path: str


@dataclass(frozen=True, slots=True)
class CloneChoice:
    """The workspace of a clone as it is to be recorded, and the reason if its location alone does not decide.

    `repository` is None for a folder outside git. `is_known`: there is a record of the clone. `earlier` lists other
    workspaces that may have memories of it.
    """

    clone: Clone
    repository: Repository | None
    why: str = ""
    is_known: bool = False
    earlier: tuple[str, ...] = ()


def choose_for_clone(
    repository: Repository, places: ClonePlaces, clones: Sequence[Clone], is_in_use: Callable[[str], bool]
) -> CloneChoice:
    """Choose the workspace of a clone: the one that it used before, else by its remote, else by its path."""
    remote = places.remote
    seen = Clone(str(repository.common_dir), find_mark(repository), "" if remote is None else remote.key, "")
    before = _find_record(seen, repository, clones)
    if before is not None and _keeps(before, seen, clones, is_in_use):
        workspace, why = before.workspace, "this clone used it before"
    else:
        others = [clone for clone in clones if clone is not before]
        workspace, why = _choose_new(repository, places, others, is_in_use)
    earlier = [clone.workspace for clone in clones if clone is before or _was_in_folder(clone, repository)]
    if not any(clone.workspace == places.path and clone.exists for clone in clones):
        earlier.append(places.path)
    return CloneChoice(
        replace(seen, workspace=workspace),
        repository,
        why,
        before is not None,
        tuple(dict.fromkeys(name for name in earlier if name != workspace)),
    )


def choose_for_folder(folder: Path, workspace: str) -> CloneChoice:
    """Return the choice for a folder outside git: if it becomes a repository, its memories are found by it."""
    return CloneChoice(Clone(str(folder), "", "", workspace), None)


def _was_in_folder(clone: Clone, repository: Repository) -> bool:
    """Return whether a record is about the folder of a repository before git was used there, or about its place."""
    is_folder = not (clone.mark or clone.root) and Path(clone.git_dir).is_relative_to(repository.root)
    return is_folder or clone.git_dir == str(repository.common_dir)


def list_moved_away(choice: CloneChoice, clones: Sequence[Clone]) -> list[str]:
    """List the workspaces of clones that are gone and had the same first commit: one may be this clone, restored."""
    gone = [clone for clone in clones if clone.root and not clone.exists]
    root = find_root(choice.repository) if gone and choice.repository is not None else None
    return [clone.workspace for clone in gone if clone.root == root]


def _find_record(seen: Clone, repository: Repository, clones: Sequence[Clone]) -> Clone | None:
    """Return the record of a clone, also after it was moved, or restored at its place from a copy."""
    moved = next((clone for clone in clones if seen.mark and clone.mark == seen.mark), None)
    there = next((clone for clone in clones if clone.git_dir == seen.git_dir), None)
    if moved is not None or there is None or there.mark == seen.mark:
        return moved or there
    root = find_root(repository)
    is_unknown = None in (root, there.root) and there.remote == seen.remote != ""
    return there if is_unknown or (root and root == there.root) else None


def find_mark(repository: Repository) -> str:
    """Return what identifies a clone on this machine after a move: number and time of a file; empty if it is missing.

    The time of the last change of the file's entry cannot be set, and a copy has a time of its own.
    """
    for name in _BIRTH_FILES:
        try:
            status = (repository.common_dir / name).lstat()
        except OSError:
            continue
        return f"{status.st_ino:x}-{status.st_ctime_ns:x}"
    return ""


def find_root(repository: Repository) -> str | None:
    """Return the first commit of a repository: empty without commits, None if it cannot be found."""
    if exists(repository.common_dir / "shallow"):
        return None
    return _find_root(repository.common_dir, head_of_repository(repository) or "")


@lru_cache(maxsize=256)
def _find_root(git_dir: Path, _head: str) -> str | None:
    try:
        git = Git(git_dir)
    except InvalidField:
        # There is no git on this machine.
        return None
    try:
        if git.has_commits():
            return git.answer("rev-list", "--first-parent", "--max-parents=0", "--max-count=1", "HEAD")
    except InvalidField:
        # A folder that git does not trust proves nothing.
        return ""
    return ""


def _keeps(before: Clone, seen: Clone, clones: Sequence[Clone], is_in_use: Callable[[str], bool]) -> bool:
    """Return whether a clone keeps its workspace; after its remote changed, it leaves one that other clones use."""
    if before.remote == seen.remote:
        return True
    is_shared = any(clone.workspace == before.workspace and clone.exists for clone in clones if clone is not before)
    return not is_shared and is_in_use(before.workspace)


def _choose_new(
    repository: Repository, places: ClonePlaces, others: Sequence[Clone], is_in_use: Callable[[str], bool]
) -> tuple[str, str]:
    """Choose the workspace of a clone that has none yet, and the reason if its location alone does not decide."""
    remote, used = places.remote, {clone.workspace for clone in others}
    why = ""
    if remote is not None:
        # Git clones only into a new or empty folder: such a clone had no memories here.
        may_stay = places.path not in used and not _was_cloned(repository)
        if may_stay and is_in_use(places.path) and not is_in_use(remote.workspace):
            return places.path, "this folder used it before it had a remote"
        peers = [clone for clone in others if clone.remote == remote.key]
        if remote.is_origin:
            # The workspace that follows from the remote goes before one that another clone brought along.
            for peer in sorted(peers, key=lambda clone: clone.workspace != remote.workspace):
                if _have_same_root(repository, peer):
                    return peer.workspace, "another clone of this remote uses it"
        if not peers and remote.workspace not in used:
            return remote.workspace, ""
        why = "another project uses the workspace of its remote"
    if places.path not in used:
        return places.path, why
    return places.reused_path, why or "another clone was here before"


def _have_same_root(repository: Repository, other: Clone) -> bool:
    """Return whether a repository and a clone have the same first commit; a shallow clone has none to compare."""
    root, roots = find_root(repository), {other.root}
    if other.exists:
        folder = Path(other.git_dir)
        roots.add(find_root(Repository(folder, folder, folder)))
    known = roots - {None, ""}
    if root is None:
        return True
    return root in known or (root != "" and not known and None in roots)


def _was_cloned(repository: Repository) -> bool:
    """Return whether git cloned a repository into its folder, which was empty before."""
    try:
        first = read_start(repository.common_dir / "logs" / "HEAD", 4096).partition(b"\n")[0]
    except UnreadableFile:
        return False
    return first.startswith(_ZEROS) and _CLONED in first
