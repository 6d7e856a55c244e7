"""Read `.reverie.toml`, which names a project's workspace or splits it.

It comes with any cloned repository, and every hook event reads it: a hostile file must cost nothing.
"""

import json
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from config.operating_system import READ_NO_FOLLOW
from config.paths import WORKSPACE_ID, is_personal, is_workspace_id
from pipeline.kernel.errors import InvalidField, NotFound
from pipeline.kernel.git.git import Git
from pipeline.kernel.git.repository import UnreadableFile, printable, resolve_upwards, root_of_folder
from pipeline.kernel.store.atomic_files import lock_file, replace_file
from pipeline.kernel.times import utc_now

# Cloning thousands of repositories must not fill the data directory with unapproved claims.
MAX_WAITING = 100


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of a project's file to a workspace, when it was found, and whether a person approved it."""

    file: str
    workspace: str
    at: str
    agreed: bool = False


class Claims:
    """The claims in a data directory, in one private file.

    A cloned repository could name any workspace, so a person approves each.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def list_all(self) -> list[Claim]:
        """List the claims, the latest first."""
        try:
            return [Claim(**record) for record in json.loads(self._file.read_bytes())]
        except FileNotFoundError:
            return []

    def is_free(self, workspace: str) -> bool:
        """Return whether no approved claim names a workspace."""
        return not any(claim.workspace == workspace and claim.agreed for claim in self.list_all())

    def is_agreed(self, file: Path, workspace: str) -> bool:
        """Return whether a person approved a claim."""
        return any(_names(claim, file, workspace) and claim.agreed for claim in self.list_all())

    def note(self, file: Path, workspace: str) -> None:
        """Add a claim that awaits approval; a known claim stays unchanged."""
        if not any(_names(claim, file, workspace) for claim in self.list_all()):
            with lock_file(self._file):
                self._store([Claim(str(file), workspace, utc_now()), *self.list_all()])

    def agree(self, file: Path, workspace: str) -> Claim:
        """Approve a claim; another claim of the same file ends."""
        claim = Claim(str(file), workspace, utc_now(), agreed=True)
        with lock_file(self._file):
            self._store([claim, *(other for other in self.list_all() if other.file != claim.file)])
        return claim

    def withdraw(self, file: Path) -> Claim:
        """Withdraw the approval of a file; raise NotFound if there was none."""
        with lock_file(self._file):
            known = self.list_all()
            withdrawn = next((claim for claim in known if claim.file == str(file) and claim.agreed), None)
            if withdrawn is None:
                raise NotFound(f"there is no approved claim of {file} claims")
            self._store([replace(claim, agreed=False) if claim is withdrawn else claim for claim in known])
        return withdrawn

    def _store(self, claims: Sequence[Claim]) -> None:
        agreed = [claim for claim in claims if claim.agreed]
        waiting = [claim for claim in claims if not claim.agreed][:MAX_WAITING]
        replace_file(self._file, json.dumps([asdict(claim) for claim in (*agreed, *waiting)], indent=1))


def _names(claim: Claim, file: Path, workspace: str) -> bool:
    return (claim.file, claim.workspace) == (str(file), workspace)


def is_of_owner(file: Path, folder: Path) -> bool:
    """Return whether a file is not part of a repository: it is outside of the folder's one, or git ignores it."""
    root = root_of_folder(file.parent)
    if root is None:
        return root_of_folder(folder) is not None
    return _is_ignored(root, file, file.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _is_ignored(root: Path, file: Path, _changed: int) -> bool:
    try:
        return Git(root).ignores(file)
    except InvalidField:
        # Without git this is unknown.
        return False


FILE_NAME = ".reverie.toml"
MAX_FILE_BYTES = 4096
MAX_NESTING = 8

Split = Literal["none", "clone", "worktree"]

_KEYS = ("workspace", "split")
_SPLITS = tuple(value for value in get_args(Split) if value != "none")
_TEXT_OR_COMMENT = re.compile(
    r"""
      \"{3} (?: [^"\\] | \\. | "{1,2}(?!") )*+ "{3}
    | '{3} (?: [^'] | '{1,2}(?!') )*+ '{3}
    | " (?: [^"\\\n] | \\. )*+ "
    | ' [^'\n]*+ '
    | \# [^\n]*+
    """,
    re.DOTALL | re.VERBOSE,
)
_NESTING = re.compile(r"[.\[{]")


@dataclass(frozen=True, slots=True)
class Override:
    """The content of a `.reverie.toml`."""

    file: Path
    workspace: str | None = None
    split: Split | None = None


def read_nearest_override(folder: Path) -> Override | None:
    """Return the content of the nearest `.reverie.toml`; raise UnreadableFile if it is invalid."""
    for parent in resolve_upwards(folder):
        file = parent / FILE_NAME
        try:
            status = file.lstat()
        except OSError:
            # No file, or in an unreadable folder.
            continue
        override = _read_version(file, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if isinstance(override, str):
            raise UnreadableFile(file, override)
        return override
    return None


@lru_cache(maxsize=256)
def _read_version(file: Path, *_version: int) -> Override | str:
    """Return the content of a version of a file, or why it is invalid."""
    try:
        return _check_values(file, _parse(file, _read(file)))
    except UnreadableFile as error:
        return error.reason


def _read(file: Path) -> str:
    try:
        if file.is_symlink():
            raise UnreadableFile(file, "is a symbolic link, and links are not followed")
        with os.fdopen(os.open(file, READ_NO_FOLLOW), "rb") as stream:
            # Reading a pipe or a device might never end.
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise UnreadableFile(file, "is not a file")
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UnreadableFile(file, error.strerror or "cannot be read") from error
    if len(data) > MAX_FILE_BYTES:
        raise UnreadableFile(file, f"is larger than {MAX_FILE_BYTES >> 10} KiB")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UnreadableFile(file, "is not valid UTF-8") from error


def _parse(file: Path, text: str) -> dict[str, Any]:
    # Few projects have such a file.
    import tomllib

    # The parser's time and memory grow with the square of a key's parts, its stack with the depth of a value.
    if len(_NESTING.findall(_TEXT_OR_COMMENT.sub("", text))) > MAX_NESTING:
        raise UnreadableFile(file, f"has too many dots and brackets; it takes {' and '.join(_KEYS)}, each a text")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(file, f"is not TOML: {printable(str(error))}") from error


def _check_values(file: Path, values: dict[str, Any]) -> Override:
    for key in values:
        if key not in _KEYS:
            raise UnreadableFile(file, f"unknown key {printable(key)}; it takes {' and '.join(_KEYS)}")
    workspace, split = values.get("workspace"), values.get("split")
    if workspace is not None and not (isinstance(workspace, str) and is_workspace_id(workspace)):
        raise UnreadableFile(file, f"workspace must match {WORKSPACE_ID.pattern}")
    if workspace is not None and is_personal(workspace):
        raise UnreadableFile(
            file, f"workspace {workspace} is reserved for a person's own memories; choose another name"
        )
    if split is not None and split not in _SPLITS:
        raise UnreadableFile(file, f"split must be one of {', '.join(_SPLITS)}")
    return Override(file, workspace, split)
