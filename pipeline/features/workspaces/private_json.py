"""Write small JSON files of the data directory."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from config.operating_system import make_folder, publish

if TYPE_CHECKING:
    from filelock import FileLock


def lock_file(file: Path) -> "FileLock":
    """Return the lock for changes of a file, whose folder is created."""
    # Imported here because every command looks up its workspace and few write.
    from filelock import FileLock

    make_folder(file.parent)
    return FileLock(f"{file}.lock", timeout=5, mode=0o600)


def write_private_json(file: Path, value: Any) -> None:
    """Replace a file, which only its owner can read, by a value as JSON; after a crash it has the old or new value."""
    draft = file.with_name(f".{file.name}-{os.urandom(4).hex()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        json.dump(value, stream, indent=1)
    publish(draft, file)
