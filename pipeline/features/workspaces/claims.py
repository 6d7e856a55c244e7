"""Claims of project files to a workspace: a cloned repository could name any workspace, so a person approves each."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

from pipeline.kernel.errors import InvalidField, NotFound
from pipeline.kernel.git.git import Git
from pipeline.kernel.git.repository import root_of_folder
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
    """The claims in a data directory, in one private file."""

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
