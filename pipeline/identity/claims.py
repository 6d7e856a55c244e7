"""Claims of project files to a workspace: a cloned repository could name anybody's, so a person agrees to each once."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import InvalidField, NotFound
from pipeline.identity.git import Git
from pipeline.identity.repository import root_of_folder
from pipeline.times import utc_now

if TYPE_CHECKING:
    from filelock import FileLock

# Who clones repositories by the thousand shall not fill the home with what nobody agreed to.
MAX_WAITING = 100


@dataclass(frozen=True, slots=True)
class Claim:
    """What the file of a project claims: a workspace; since when that is known, and whether a person agreed."""

    file: str
    workspace: str
    at: str
    agreed: bool = False


class Claims:
    """The claims that a home knows, in one file that only its owner reads."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def list_all(self) -> list[Claim]:
        """List the claims, the latest first."""
        try:
            return [Claim(**one) for one in json.loads(self._file.read_bytes())]
        except FileNotFoundError:
            return []

    def is_free(self, workspace: str) -> bool:
        """Return whether no project has a workspace by agreement."""
        return not any(one.workspace == workspace and one.agreed for one in self.list_all())

    def is_agreed(self, file: Path, workspace: str) -> bool:
        """Return whether a person agreed to a claim."""
        return any(_names(one, file, workspace) and one.agreed for one in self.list_all())

    def note(self, file: Path, workspace: str) -> None:
        """Let a claim wait for a person; one that is known stays as it is."""
        if not any(_names(one, file, workspace) for one in self.list_all()):
            with self._lock():
                self._store([Claim(str(file), workspace, utc_now()), *self.list_all()])

    def agree(self, file: Path, workspace: str) -> Claim:
        """Agree to a claim; another one of the same file ends."""
        claim = Claim(str(file), workspace, utc_now(), agreed=True)
        with self._lock():
            self._store([claim, *(one for one in self.list_all() if one.file != claim.file)])
        return claim

    def withdraw(self, file: Path) -> Claim:
        """Take back what was agreed for a file; raise NotFound if nothing was."""
        with self._lock():
            known = self.list_all()
            found = next((one for one in known if one.file == str(file) and one.agreed), None)
            if found is None:
                raise NotFound(f"nobody agreed to what {file} claims")
            self._store([replace(one, agreed=False) if one is found else one for one in known])
        return found

    def _lock(self) -> "FileLock":
        # Loaded by who writes only: every command looks whose folder it is in.
        from filelock import FileLock

        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return FileLock(f"{self._file}.lock", timeout=5, mode=0o600)

    def _store(self, claims: Sequence[Claim]) -> None:
        agreed = [one for one in claims if one.agreed]
        waiting = [one for one in claims if not one.agreed][:MAX_WAITING]
        draft = self._file.with_name(f".{self._file.name}-{os.urandom(4).hex()}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump([asdict(one) for one in (*agreed, *waiting)], file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._file)


def _names(claim: Claim, file: Path, workspace: str) -> bool:
    return (claim.file, claim.workspace) == (str(file), workspace)


def is_of_owner(file: Path, folder: Path) -> bool:
    """Return whether a file came with no repository: it stands outside of the one of a folder, or git ignores it."""
    root = root_of_folder(file.parent)
    if root is None:
        return root_of_folder(folder) is not None
    return _is_ignored(root, file, file.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _is_ignored(root: Path, file: Path, _changed: int) -> bool:
    try:
        return Git(root).ignores(file)
    except InvalidField:
        # Without git nobody knows.
        return False
