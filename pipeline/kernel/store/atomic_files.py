"""Write files that get their name only when they are complete and on disk, and lock them for changes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from config.operating_system import make_folder, publish

if TYPE_CHECKING:
    from filelock import FileLock


@contextmanager
def writing(target: Path) -> Iterator[BinaryIO]:
    """Yield a private file for writing that gets its name when it is complete."""
    partial = target.with_name(f".{target.name}.partial")
    # Remains of an interrupted run.
    partial.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield file
        publish(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def replace_file(file: Path, text: str) -> None:
    """Replace a file, which only its owner can read, by a text; after a crash it has the old or the new content.

    Two processes may replace a file at the same time: each writes its own draft.
    """
    draft = file.with_name(f".{file.name}-{os.urandom(4).hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        publish(draft, file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def lock_file(file: Path) -> "FileLock":
    """Return the lock for changes of a file, whose folder is created."""
    # Imported here because every command looks up its workspace and few write.
    from filelock import FileLock

    make_folder(file.parent)
    return FileLock(f"{file}.lock", timeout=5, mode=0o600)
