"""What the file system knows of a file."""

import os


def file_identity(file: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Return (device, inode) of a file, None when there is none; another file by the same name has another identity."""
    try:
        status = os.stat(file)  # noqa: PTH116 - before every write and queue message; Path.stat costs twice as much
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
