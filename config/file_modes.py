"""Keep Reverie's files private to their owner: the umask of its processes and the permissions of existing files."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

# The permissions of everyone but a file's owner.
OTHERS = 0o077

# The umask of this process before `make_umask_private`.
_umask: list[int] = []


def make_umask_private() -> None:
    """Make all files that this process and its children create from now on private to their owner."""
    before = os.umask(OTHERS)
    if not _umask:
        _umask.append(before)


def original_umask() -> int:
    """Return the umask with which this process started; it applies to files outside the data directory."""
    if _umask:
        return _umask[0]
    # The only way to read the umask is to set it.
    mask = os.umask(OTHERS)
    os.umask(mask)
    return mask


def find_public_paths(folder: Path) -> Iterator[Path]:
    """Yield files and folders that others than the owner can enter, read or change; a folder comes before its content.

    Symbolic links are not followed, except if the folder itself is one.
    """
    if folder.exists() and folder.stat().st_mode & OTHERS:
        yield folder
    folders = [os.fspath(folder)]
    while folders:
        # Other processes create and delete files in the data directory, and a folder may belong to another user.
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


def make_private(path: Path) -> bool:
    """Make a file or folder private to its owner; return whether it is private now, or gone."""
    try:
        path.chmod(path.stat().st_mode & 0o777 & ~OTHERS)
    except FileNotFoundError:
        return True
    except PermissionError:
        return False
    return True
