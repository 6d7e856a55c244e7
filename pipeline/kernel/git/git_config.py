"""Determine a repository's remote from the git configurations of repository, user and machine, without running git.

A repository's configuration may include files inside of the repository; other files that it names are not read. The
files of the user and of the machine belong to the owner and may include any file.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.kernel.git.repository import READ_LIMIT, Repository, UnreadableFile, exists, parse_config, read_bounded

MACHINE_CONFIG_FILE = Path("/etc/gitconfig")
# Inside the user's home folder, in git's order.
USER_CONFIG_FILES = (Path(".config/git/config"), Path(".gitconfig"))
# Git's limit.
DEEPEST_INCLUDE = 10

_EXCLUDES_FILE = (("core", ""), "excludesfile")
_WILDCARDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}

# Section and subsection, name, value.
Variable = tuple[tuple[str, str], str, str]


@dataclass(frozen=True, slots=True)
class Remote:
    """A remote's name and address; the address may contain credentials."""

    name: str
    url: str


def remote_of(repository: Repository) -> Remote | None:
    """Return the remote `origin`, else the only one, else the first by name, with the address that git fetches from.

    Raises UnreadableFile for an invalid file of the repository.
    """
    own = list(_RepositoryFiles(repository).read(repository.common_dir / "config"))
    urls: dict[str, str] = {}
    for (section, name), key, value in own:
        # Of several addresses git fetches from the first.
        if section == "remote" and name and key == "url" and value:
            urls.setdefault(name, value)
    chosen = "origin" if "origin" in urls else min(urls, default=None)
    return None if chosen is None else Remote(chosen, _rewrite(urls[chosen], [*_read_user_files(repository), *own]))


def find_excludes_file(repository: Repository) -> Path | None:
    """Return the user's file of ignored paths for all repositories; None if the user has no home folder."""
    home = _home()
    values = [value for section, key, value in _read_user_files(repository) if (section, key) == _EXCLUDES_FILE]
    if home is None or not values:
        return None if home is None else home / ".config/git/ignore"
    return Path(values[-1]).expanduser()


def _rewrite(url: str, variables: Iterable[Variable]) -> str:
    """Apply `url.BASE.insteadOf` to an address: the longest matching prefix counts, once."""
    bases = [
        (value, base)
        for (section, base), key, value in variables
        if section == "url" and key == "insteadof" and url.startswith(value)
    ]
    # Among several bases for a prefix, git uses the first.
    beginning, base = max(bases, key=lambda rule: len(rule[0]), default=("", ""))
    return base + url.removeprefix(beginning)


class _Files:
    """Configuration files with their includes, within a common size limit."""

    def __init__(self) -> None:
        self._left = READ_LIMIT

    def read(self, file: Path, depth: int = 0) -> Iterator[Variable]:
        """Iterate over the variables of a file, if it exists, and of included files, in git's order.

        Raises UnreadableFile.
        """
        if not exists(file):
            return
        data = read_bounded(file)
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableFile(file, "is longer than 1 MiB with what includes it")
        for variable in parse_config(os.fsdecode(data)):
            yield variable
            (section, condition), name, value = variable
            if name == "path" and value and depth < DEEPEST_INCLUDE and self._includes(section, condition, file):
                included = _find(file, value)
                if included is not None and self._may_read(included):
                    yield from self.read(included, depth + 1)

    def _includes(self, section: str, condition: str, _file: Path) -> bool:
        return section == "include" and not condition

    def _may_read(self, _file: Path) -> bool:
        return True


class _RepositoryFiles(_Files):
    """A repository's files; conditional includes are ignored, because their patterns are untrusted."""

    def __init__(self, repository: Repository) -> None:
        super().__init__()
        self._places = (repository.common_dir, repository.git_dir, repository.root.resolve())

    def _may_read(self, file: Path) -> bool:
        return any(file.is_relative_to(folder) for folder in self._places)


class _UserFiles(_Files):
    """The files of the user and of the machine; only conditions on the repository's location are supported."""

    def __init__(self, repository: Repository) -> None:
        super().__init__()
        self._git_dir = str(repository.git_dir)

    def _includes(self, section: str, condition: str, file: Path) -> bool:
        kind, _, pattern = condition.partition(":")
        if section == "includeif" and kind in ("gitdir", "gitdir/i") and pattern:
            flags = re.IGNORECASE if kind == "gitdir/i" else 0
            return re.fullmatch(_expression_of(pattern, file), self._git_dir, flags) is not None
        return super()._includes(section, condition, file)


def _read_user_files(repository: Repository) -> list[Variable]:
    """Return the variables of the machine and the user that apply to a repository."""
    variables: list[Variable] = []
    home = _home()
    for file in (MACHINE_CONFIG_FILE, *(home / name for name in USER_CONFIG_FILES if home is not None)):
        try:
            variables += _UserFiles(repository).read(file)
        except UnreadableFile:
            # Git warns about such a file and continues without it.
            continue
    return variables


def _find(file: Path, value: str) -> Path | None:
    """Return the file of an include, with links resolved; None for a path that cannot be resolved."""
    try:
        return (file.parent / Path(value).expanduser()).resolve()
    except (OSError, RuntimeError, ValueError):
        return None


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:
        # Neither the environment nor the system names a home folder.
        return None


def _expression_of(pattern: str, file: Path) -> str:
    """Return the regular expression for a condition on a git directory."""
    home = _home()
    if pattern.startswith("~/") and home is not None:
        pattern = f"{home.resolve()}{pattern[1:]}"
    elif pattern.startswith("./"):
        pattern = f"{file.parent.resolve()}{pattern[1:]}"
    elif not pattern.startswith("/"):
        pattern = f"**/{pattern}"
    if pattern.endswith("/"):
        pattern += "**"
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return "".join(_WILDCARDS.get(part, re.escape(part)) for part in parts)
