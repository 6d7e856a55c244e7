"""What was done to which file, so that `reverie setup --remove` leaves it as it was."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from web.hosts.entries import EntryUndo
from web.hosts.files import write_atomically

NAME = "setup.json"
# What stands for a variable begins with `$` and is no token.
_BEARER = re.compile(r"Bearer ([A-Za-z0-9_-]+)")


@dataclass(frozen=True, slots=True)
class InstalledFile:
    """One file: which hosts use Reverie's entries in it, and what was there before."""

    hosts: frozenset[str]
    undo: EntryUndo = field(default_factory=EntryUndo)
    created: bool = False
    folders: tuple[str, ...] = ()
    """Folders that were made for it, the outermost first."""
    mode: int | None = None
    """Its permissions before a token made it private."""
    project: str | None = None
    """The folder that it was set up for, if it is not the user's own."""


InstallState = Mapping[str, InstalledFile]
"""What a setup has done, by file."""


def read_state(root: Path) -> dict[str, InstalledFile]:
    """Return the records by file; a file that is missing or unreadable counts as empty."""
    try:
        stored = json.loads((root / NAME).read_text(encoding="utf-8"))
        return {file: _record_from_json(value) for file, value in stored["files"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # Entries are recognised without it; only what was empty or missing before cannot be told any more.
        return {}


def write_state(root: Path, records: InstallState) -> None:
    """Store the records; without any their file goes."""
    if not records:
        (root / NAME).unlink(missing_ok=True)
        return
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    stored = {"version": 1, "files": {file: _record_to_json(record) for file, record in sorted(records.items())}}
    write_atomically(root / NAME, (json.dumps(stored, indent=1) + "\n").encode(), mode=0o600)


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file in which a setup has written the token, for which hosts, and whether that is the present one."""

    path: Path
    hosts: tuple[str, ...]
    current: bool


def find_token_files(root: Path, token: str) -> list[TokenFile]:
    """List the files that a setup of this home has written a token into; one that cannot be read is left out."""
    found = []
    for file, record in sorted(read_state(root).items()):
        held = _read_tokens(Path(file))
        if held:
            found.append(TokenFile(Path(file), tuple(sorted(record.hosts)), held == {token}))
    return found


def _read_tokens(file: Path) -> set[str]:
    try:
        return set(_BEARER.findall(file.read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return set()


def _record_to_json(record: InstalledFile) -> dict[str, Any]:
    return {
        "hosts": sorted(record.hosts),
        "undo": record.undo.to_json(),
        "created": record.created,
        "folders": list(record.folders),
        "mode": record.mode,
        "project": record.project,
    }


def _record_from_json(value: Mapping[str, Any]) -> InstalledFile:
    return InstalledFile(
        frozenset(value["hosts"]),
        EntryUndo.from_json(value["undo"]),
        bool(value["created"]),
        tuple(value["folders"]),
        value["mode"],
        value["project"],
    )
