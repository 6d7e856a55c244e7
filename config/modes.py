"""Whose files are: what Reverie keeps is its owner's alone, by the umask of its processes and by what stands there."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

# The permissions of everybody but a file's owner.
OTHERS = 0o077

# The umask that this process was started with, once it was closed.
_umask: list[int] = []


def close_umask() -> None:
    """Keep every file that this process and its children make from now on to its owner, whatever umask they got."""
    before = os.umask(OTHERS)
    if not _umask:
        _umask.append(before)


def usual_umask() -> int:
    """Return the umask that this process was started with, by which files outside of the home are made."""
    if _umask:
        return _umask[0]
    # The only way to read it is to set it.
    mask = os.umask(OTHERS)
    os.umask(mask)
    return mask


def find_open_places(folder: Path) -> Iterator[Path]:
    """Yield what others than the owner may enter, read or change; a folder comes before what is in it.

    What links lead to is not looked at, but the folder itself may be one.
    """
    if folder.exists() and folder.stat().st_mode & OTHERS:
        yield folder
    folders = [os.fspath(folder)]
    while folders:
        # Files come and go while others work in the home, and a folder of another user's is theirs.
        with contextlib.suppress(FileNotFoundError, PermissionError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if not entry.is_symlink() and _is_open(entry):
                    yield Path(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)


def _is_open(entry: os.DirEntry[str]) -> bool:
    try:
        return bool(entry.stat(follow_symlinks=False).st_mode & OTHERS)
    except FileNotFoundError:
        return False


def close_place(place: Path) -> bool:
    """Leave a file or folder to its owner alone; tell whether that is so now, or it is gone."""
    try:
        place.chmod(place.stat().st_mode & 0o777 & ~OTHERS)
    except FileNotFoundError:
        return True
    except PermissionError:
        return False
    return True
