"""Write files that get their name only when they are complete and on disk."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from config.operating_system import publish


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
