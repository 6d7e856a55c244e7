"""Small files of strangers: read within a bound, refused with a reason."""

import os
from pathlib import Path

from pipeline.errors import FieldError, InvalidField

READ_LIMIT = 1024 * 1024
SHOWN_CHARS = 300


class Unreadable(Exception):
    """Say which file cannot be taken, and why."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(f"{shown(file)}: {reason}")
        self.file = file
        self.reason = reason


def read_bounded(file: Path) -> bytes:
    """Return the bytes of a regular file of at most 1 MiB; raise Unreadable for anything else."""
    try:
        # A pipe or a device could be read forever.
        if not file.is_file():
            raise Unreadable(file, "is not a file")
        with file.open("rb") as stream:
            data = stream.read(READ_LIMIT + 1)
    except OSError as error:
        raise Unreadable(file, error.strerror or "cannot be read") from error
    if len(data) > READ_LIMIT:
        raise Unreadable(file, "is longer than 1 MiB")
    return data


def exists(path: Path) -> bool:
    """Tell whether something is there; unlike Path.exists, a place that may not be looked at holds nothing."""
    return os.path.exists(path)  # noqa: PTH110


def upwards(folder: Path) -> tuple[Path, ...]:
    """Return a folder, its links followed, and all above it; raise InvalidField for a path that cannot be followed."""
    try:
        resolved = folder.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidField(FieldError("cwd", "is not a folder that can be looked at")) from error
    return (resolved, *resolved.parents)


def shown(value: Path | str) -> str:
    """Return a path or text as one printable line of bounded length."""
    line = "".join(char if char.isprintable() else "�" for char in str(value)[: SHOWN_CHARS + 1])
    return line if len(line) <= SHOWN_CHARS else f"{line[:SHOWN_CHARS]}…"
