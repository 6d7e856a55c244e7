"""What was done to which file, so that `reverie setup --remove` leaves it as it was."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from web.hosts.entries import Undo
from web.hosts.files import write_atomically

NAME = "setup.json"


@dataclass(frozen=True, slots=True)
class Record:
    """One file: which hosts use Reverie's entries in it, and what was there before."""

    hosts: frozenset[str]
    undo: Undo = field(default_factory=Undo)
    created: bool = False
    folders: tuple[str, ...] = ()
    """Folders that were made for it, the outermost first."""
    mode: int | None = None
    """Its permissions before a token made it private."""
    project: str | None = None
    """The folder that it was set up for, if it is not the user's own."""


def read(root: Path) -> dict[str, Record]:
    """Return the records by file; a ledger that is missing or unreadable counts as empty."""
    try:
        stored = json.loads((root / NAME).read_text(encoding="utf-8"))
        return {file: _record(value) for file, value in stored["files"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # Entries are recognised without it; only what was empty or missing before cannot be told any more.
        return {}


def write(root: Path, records: Mapping[str, Record]) -> None:
    """Store the records; without any the ledger goes."""
    if not records:
        (root / NAME).unlink(missing_ok=True)
        return
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    stored = {"version": 1, "files": {file: _stored(record) for file, record in sorted(records.items())}}
    write_atomically(root / NAME, (json.dumps(stored, indent=1) + "\n").encode(), mode=0o600)


def _stored(record: Record) -> dict[str, Any]:
    return {
        "hosts": sorted(record.hosts),
        "undo": record.undo.to_json(),
        "created": record.created,
        "folders": list(record.folders),
        "mode": record.mode,
        "project": record.project,
    }


def _record(value: Mapping[str, Any]) -> Record:
    return Record(
        frozenset(value["hosts"]),
        Undo.from_json(value["undo"]),
        bool(value["created"]),
        tuple(value["folders"]),
        value["mode"],
        value["project"],
    )
