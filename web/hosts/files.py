"""Files of others, read and replaced whole: their mode, owner and symbolic links stay."""

import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path

from web.hosts.entries import CannotEdit

PRIVATE = 0o600


def read(path: Path) -> bytes | None:
    """Return a file's bytes, None where there is none; raise CannotEdit where it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CannotEdit(f"it cannot be read: {error.strerror}") from error


def mode_of(path: Path) -> int | None:
    """Return a file's permissions, None where there is none."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None


def list_missing_folders(path: Path) -> tuple[str, ...]:
    """Return the folders that must be made for a file, the outermost first."""
    missing = []
    for folder in path.parents:
        if folder.is_dir():
            break
        missing.append(str(folder))
    return tuple(reversed(missing))


def write_atomically(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Replace or make a file in one step; without a mode it keeps its own."""
    try:
        before = path.stat()
    except FileNotFoundError:
        before = None
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.parent / f".{path.name}.{secrets.token_hex(4)}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _take_over(draft, before, mode)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def delete(path: Path, folders: Sequence[str]) -> None:
    """Delete a file and the folders given, the innermost first, as far as they are empty."""
    path.unlink()
    for folder in reversed(folders):
        try:
            Path(folder).rmdir()
        except OSError:
            # Something else lives there by now.
            return


def _take_over(draft: Path, before: os.stat_result | None, mode: int | None) -> None:
    if before is not None and hasattr(os, "chown") and (before.st_uid, before.st_gid) != _owner(draft):
        os.chown(draft, before.st_uid, before.st_gid)
    if mode is None:
        mode = stat.S_IMODE(before.st_mode) if before is not None else 0o666 & ~_umask()
    draft.chmod(mode)


def _owner(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid


def _umask() -> int:
    # The only way to read it is to set it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
