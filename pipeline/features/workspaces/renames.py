"""New names of workspaces: the id that a folder yields stays the same when its workspace is moved to another one."""

import json
from collections.abc import Mapping
from pathlib import Path

from pipeline.kernel.store.atomic_files import lock_file, replace_file


class Renames:
    """The new names in a data directory, in one private file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def find(self, workspace: str) -> str:
        """Return the current name of a workspace."""
        return self._read().get(workspace, workspace)

    def add(self, workspace: str, new_name: str) -> None:
        """Use another workspace from now on wherever this one, or one that was renamed to it, would be used."""
        with lock_file(self._file):
            renames = {old: new_name if name == workspace else name for old, name in self._read().items()}
            renames[workspace] = new_name
            self._store({old: name for old, name in renames.items() if old != name})

    def forget(self, workspace: str) -> None:
        """Forget the names that lead to a deleted workspace."""
        with lock_file(self._file):
            renames = self._read()
            if workspace in renames.values():
                self._store({old: name for old, name in renames.items() if name != workspace})

    def _read(self) -> dict[str, str]:
        try:
            renames: dict[str, str] = json.loads(self._file.read_bytes())
        except FileNotFoundError:
            return {}
        return renames

    def _store(self, renames: Mapping[str, str]) -> None:
        replace_file(self._file, json.dumps(renames, indent=1))
