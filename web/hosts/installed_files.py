"""Read and replace files of other programs, and record each change.

Mode, owner and symbolic links of a file are kept. The records let `reverie setup --remove` restore the original.
"""

import json
import os
import secrets
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from config.file_modes import original_umask
from config.operating_system import copy_owner, read_regular
from web.hosts.entries import CannotEdit, EntryUndo

PRIVATE = 0o600
# Claude Code's own file contains the history of all projects.
MOST_BYTES = 64 * 1024 * 1024
STATE_FILE = "setup.json"


def read(path: Path) -> bytes | None:
    """Return a file's bytes, None if it does not exist; raise CannotEdit for anything but a file of a usual size."""
    try:
        return read_regular(path, MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CannotEdit(f"it cannot be read: {error.strerror}") from error


def list_missing_folders(path: Path) -> tuple[str, ...]:
    """List the folders that must be created for a file, the outermost first."""
    missing = []
    for folder in path.parents:
        if folder.is_dir():
            break
        missing.append(str(folder))
    return tuple(reversed(missing))


def write_atomically(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Create or replace a file atomically; without a mode, keep its mode."""
    try:
        before = path.stat()
    except FileNotFoundError:
        before = None
    _make_folders(path)
    draft = path.parent / f".{path.name}.{secrets.token_hex(4)}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _take_over(draft, before, mode)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def delete(path: Path, folders: Sequence[str]) -> None:
    """Delete a file, and the given folders that become empty, the innermost first."""
    path.unlink()
    for folder in reversed(folders):
        try:
            Path(folder).rmdir()
        except OSError:
            # Another program uses the folder by now.
            return


def _take_over(draft: Path, before: os.stat_result | None, mode: int | None) -> None:
    if before is not None:
        copy_owner(draft, before)
    if mode is None:
        mode = stat.S_IMODE(before.st_mode) if before is not None else 0o666 & ~original_umask()
    draft.chmod(mode)


def _make_folders(path: Path) -> None:
    missing = list_missing_folders(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        # A file outside the data directory keeps the owner and group of its folder.
        Path(folder).chmod(0o777 & ~original_umask())


@dataclass(frozen=True, slots=True)
class InstalledFile:
    """A file that setup changed: the hosts whose entries it contains, and its original state."""

    hosts: frozenset[str]
    undo: EntryUndo = field(default_factory=EntryUndo)
    created: bool = False
    folders: tuple[str, ...] = ()
    """Folders that were created for it, the outermost first."""
    project: str | None = None
    """The project folder that it was set up for, or None for a user's file."""


InstallState = Mapping[str, InstalledFile]
"""Records of changed files, by file."""


def read_state(root: Path) -> dict[str, InstalledFile]:
    """Return the records by file; a missing or unreadable record file counts as empty."""
    try:
        stored = json.loads((root / STATE_FILE).read_text(encoding="utf-8"))
        return {file: _record_from_json(value) for file, value in stored["files"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # Entries are recognized without it; only files that were empty or missing cannot be restored exactly.
        return {}


def write_state(root: Path, records: InstallState) -> None:
    """Store the records; without records, delete the file."""
    if not records:
        (root / STATE_FILE).unlink(missing_ok=True)
        return
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    stored = {"version": 1, "files": {file: _record_to_json(record) for file, record in sorted(records.items())}}
    write_atomically(root / STATE_FILE, (json.dumps(stored, indent=1) + "\n").encode(), mode=0o600)


def _record_to_json(record: InstalledFile) -> dict[str, Any]:
    return {
        "hosts": sorted(record.hosts),
        "undo": record.undo.to_json(),
        "created": record.created,
        "folders": list(record.folders),
        "project": record.project,
    }


def _record_from_json(value: Mapping[str, Any]) -> InstalledFile:
    return InstalledFile(
        frozenset(value["hosts"]),
        EntryUndo.from_json(value["undo"]),
        bool(value["created"]),
        tuple(value["folders"]),
        value["project"],
    )
