"""Find out whether a file came with the repository around it: git tracks it, or it is older than the clone.

The files of git are read without git: a repository must not choose what runs.
"""

import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path

# An index of two million files.
MOST_INDEX_BYTES = 256 << 20
_MOST_TEXT_BYTES = 64 << 10
_SHA256 = re.compile(rb"^\s*objectformat\s*=\s*sha256", re.IGNORECASE | re.MULTILINE)
_IS_EXTENDED, _HAS_MANY_FIELDS = 0x4000, 3
_STATUS_BYTES = 40


class Repository:
    """The repository around a file."""

    def __init__(self, root: Path, git_folder: Path) -> None:
        self._root = root
        self._git = git_folder
        common = _read_start(git_folder / "commondir").decode("utf-8", "replace").strip()
        # The folders of worktrees share the log and the settings of the repository.
        self._common = git_folder / common if common else git_folder

    def tracks(self, file: Path) -> bool:
        """Return whether git tracks a file; true if the index cannot be read."""
        name = os.fsencode(file.relative_to(self._root).as_posix())
        digest_bytes = 32 if _SHA256.search(_read_start(self._common / "config")) else 20
        indexes = [path for path in (self._git / "index", *self._git.glob("sharedindex.*")) if path.is_file()]
        try:
            return any(name in _list_names(index, digest_bytes) for index in indexes)
        except (OSError, ValueError, IndexError, struct.error):
            return True

    def find_clone_time(self) -> float | None:
        """Return when the repository was cloned; None if it was made on this machine, or has no log."""
        who, _, action = _read_start(self._common / "logs/HEAD").partition(b"\n")[0].partition(b"\t")
        words = who.split()
        is_clone = action.startswith(b"clone:") and len(words) > 1 and words[-2].isdigit()
        return float(words[-2]) if is_clone else None


def find_repository(file: Path) -> Repository | None:
    """Return the repository around a file, None if there is none."""
    for folder in file.parents:
        git = folder / ".git"
        if git.is_dir():
            return Repository(folder, git)
        if git.is_file():
            target = _read_start(git).decode("utf-8", "replace").removeprefix("gitdir:").strip()
            return Repository(folder, folder / target)
    return None


def _read_start(path: Path) -> bytes:
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(_MOST_TEXT_BYTES)
    except OSError:
        return b""


def _list_names(index: Path, digest_bytes: int) -> Iterator[bytes]:
    """Yield the names of the tracked files; raise ValueError if it is no index that git wrote."""
    with index.open("rb") as file:
        data = file.read(MOST_INDEX_BYTES + 1)
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in (2, 3, 4) or len(data) > MOST_INDEX_BYTES:
        raise ValueError("unknown form of an index")
    position, name = 12, b""
    for _ in range(count):
        start = position
        position += _STATUS_BYTES + digest_bytes
        (flags,) = struct.unpack_from(">H", data, position)
        position += 4 if flags & _IS_EXTENDED and version >= _HAS_MANY_FIELDS else 2
        if version == 4:
            removed, position = _read_number(data, position)
            kept = name[: len(name) - removed]
        else:
            kept = b""
        end = data.index(b"\0", position)
        name = kept + data[position:end]
        yield name
        # Versions before 4 pad an entry to a multiple of eight bytes.
        position = end + 1 if version == 4 else start + ((end - start) // 8 + 1) * 8


def _read_number(data: bytes, position: int) -> tuple[int, int]:
    """Return a number of variable length, as git writes offsets, and the position after it."""
    byte = data[position]
    number = byte & 0x7F
    while byte & 0x80:
        position += 1
        byte = data[position]
        number = ((number + 1) << 7) | (byte & 0x7F)
    return number, position + 1
