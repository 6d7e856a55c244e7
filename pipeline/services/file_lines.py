"""Find a file of a folder on this machine, and the commit of one of its lines; no store is read."""

from pathlib import Path

from pipeline.anchors import find_checkout
from pipeline.identity import line_commit
from pipeline.identity.line_commit import LineCommit


def locate_file(folder: Path, path: str) -> tuple[Path, str]:
    """Return a file by a path from a folder, and its path in the git checkout that contains it."""
    file = (folder / path).absolute()
    checkout = find_checkout(str(file.parent))
    if checkout is None or not file.is_relative_to(checkout):
        return file, path
    return file, file.relative_to(checkout).as_posix()


def find_line_commit(file: Path, line: int) -> LineCommit | None:
    """Return the commit that last changed a line of a file on this machine."""
    return line_commit.find_line_commit(file, line)
