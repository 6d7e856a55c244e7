"""Read a git repository's files without git: its git directory, branch and configuration.

The files are untrusted: read up to a limit, and rejected with a reason.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.kernel.errors import FieldError, InvalidField

READ_LIMIT = 1024 * 1024
SHOWN_CHARS = 300

_HEADER = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_VARIABLE = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*=")
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}
_BRANCH = "refs/heads/"


class UnreadableFile(Exception):
    """An untrusted file cannot be used, and why."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(f"{printable(file)}: {reason}")
        self.file = file
        self.reason = reason


def read_bounded(file: Path, limit: int = READ_LIMIT) -> bytes:
    """Return the bytes of a regular file of at most 1 MiB or another limit; raise UnreadableFile for anything else."""
    data = read_start(file, limit + 1)
    if len(data) > limit:
        raise UnreadableFile(file, f"is longer than {limit >> 20} MiB")
    return data


def read_start(file: Path, limit: int) -> bytes:
    """Return the first bytes of a regular file; raise UnreadableFile for anything else."""
    try:
        # Reading a pipe or a device might never end.
        if not file.is_file():
            raise UnreadableFile(file, "is not a file")
        with file.open("rb") as stream:
            return stream.read(limit)
    except OSError as error:
        raise UnreadableFile(file, error.strerror or "cannot be read") from error


def exists(path: Path) -> bool:
    """Return whether a path exists; unlike with Path.exists, an inaccessible path counts as missing."""
    return os.path.exists(path)  # noqa: PTH110


def resolve_upwards(folder: Path) -> tuple[Path, ...]:
    """Return a folder with links resolved, and its parents; raise InvalidField for a path that cannot be resolved."""
    try:
        resolved = folder.resolve()
        # Python 3.13 returns a loop of links as it is, where earlier versions raise.
        if resolved.is_symlink():
            resolved = folder.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidField(FieldError("cwd", "is not a readable folder")) from error
    return (resolved, *resolved.parents)


def printable(value: Path | str) -> str:
    """Return a path or text as one printable line of limited length."""
    line = "".join(char if char.isprintable() else "�" for char in str(value)[: SHOWN_CHARS + 1])
    return line if len(line) <= SHOWN_CHARS else f"{line[:SHOWN_CHARS]}…"


@dataclass(frozen=True, slots=True)
class Repository:
    """A checkout: its root, its git directory, and the git directory that all its worktrees share."""

    root: Path
    git_dir: Path
    common_dir: Path


def root_of_folder(folder: Path) -> Path | None:
    """Return the nearest parent folder with `.git`; raise InvalidField for a path that cannot be resolved."""
    return next((parent for parent in resolve_upwards(folder) if exists(parent / ".git")), None)


def open_repository(root: Path) -> Repository:
    """Return the repository with this root; `.git` is a folder, or a file of a worktree or submodule."""
    git_dir = root / ".git"
    if not os.path.isdir(git_dir):  # noqa: PTH112 - answers for every path, Path.is_dir raises
        git_dir = _find_named_folder(git_dir, "gitdir:")
    pointer = git_dir / "commondir"
    common_dir = _find_named_folder(pointer, "") if exists(pointer) else git_dir
    return Repository(root, git_dir.resolve(), common_dir.resolve())


def branch_of_folder(folder: Path) -> str | None:
    """Return the branch checked out in a folder; None when detached, unreadable or without git.

    Raises InvalidField for a path that cannot be resolved.
    """
    root = root_of_folder(folder)
    if root is None:
        return None
    try:
        head = read_bounded(open_repository(root).git_dir / "HEAD").decode("utf-8", "replace")
    except UnreadableFile:
        return None
    branch = head.removeprefix("ref:").strip().removeprefix(_BRANCH)
    # The reftable format stores HEAD elsewhere and leaves `.invalid` here.
    if not head.startswith("ref:") or f"{_BRANCH}{branch}" not in head or branch in ("", ".invalid"):
        return None
    return printable(branch)


def head_of_folder(root: Path) -> str | None:
    """Return the commit that is checked out in a root, None if git's files do not say it."""
    try:
        return head_of_repository(open_repository(root))
    except UnreadableFile:
        return None


def head_of_repository(repository: Repository) -> str | None:
    """Return the commit that is checked out in a repository, None if git's files do not say it."""
    try:
        head = read_bounded(repository.git_dir / "HEAD").decode("utf-8", "replace").strip()
        if not head.startswith("ref:"):
            return head or None
        ref = head.removeprefix("ref:").strip()
        if ".." not in ref and exists(repository.common_dir / ref):
            return read_bounded(repository.common_dir / ref).decode("utf-8", "replace").strip() or None
        packed = read_bounded(repository.common_dir / "packed-refs").decode("utf-8", "replace")
    except UnreadableFile:
        return None
    return next((line.split(" ")[0] for line in packed.splitlines() if line.endswith(f" {ref}")), None)


def _find_named_folder(file: Path, prefix: str) -> Path:
    """Return the folder that a pointer file names, relative to itself."""
    text = os.fsdecode(read_bounded(file))
    if not text.startswith(prefix):
        raise UnreadableFile(file, "is not a git file")
    folder = file.parent / text.removeprefix(prefix).strip()
    if folder == file.parent or not os.path.isdir(folder):  # noqa: PTH112 - answers for every path, Path.is_dir raises
        raise UnreadableFile(file, "does not name a folder")
    return folder


def parse_config(text: str) -> Iterator[tuple[tuple[str, str], str, str]]:
    """Yield ((section, subsection), key, value) of a git config, skipping invalid lines."""
    lines = iter(text.removeprefix("\ufeff").split("\n"))
    section = ("", "")
    for line in lines:
        rest = line.strip()
        if rest.startswith("["):
            header = _HEADER.match(rest)
            section = _section(header) if header else ("", "")
            rest = rest[header.end() :].lstrip() if header else ""
        variable = _VARIABLE.match(rest)
        if variable:
            yield section, variable[1].lower(), _value(rest[variable.end() :], lines)


def _section(header: re.Match[str]) -> tuple[str, str]:
    if header[2] is not None:
        return header[1].lower(), re.sub(r"\\(.)", r"\1", header[2])
    # The old form, [remote.origin], ignores case.
    section, _, subsection = header[1].lower().partition(".")
    return section, subsection


def _value(raw: str, following: Iterator[str]) -> str:
    """Return a value without quotes, escapes and comment; a final backslash joins the next line."""
    value: list[str] = []
    quoted = False
    while True:
        escaped = False
        for char in raw:
            if escaped:
                value.append(_ESCAPES.get(char, char))
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                quoted = not quoted
            elif char in "#;" and not quoted:
                return "".join(value).strip()
            else:
                value.append(char)
        if not escaped:
            return "".join(value).strip()
        raw = next(following, "").rstrip("\r")
