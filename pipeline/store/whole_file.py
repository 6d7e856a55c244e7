"""Files that have their name only once they are whole and on disk."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from config.operating_system import sync_place


@contextmanager
def writing(target: Path) -> Iterator[BinaryIO]:
    """Give a file to write that gets its name, for good, when it is whole; nobody else may read it."""
    partial = target.with_name(f".{target.name}.partial")
    # What an interrupted run has left.
    partial.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield file
        publish(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def publish(partial: Path, target: Path) -> None:
    """Give a whole file its name, for good."""
    sync_place(partial)
    partial.replace(target)
    sync_place(target.parent)
